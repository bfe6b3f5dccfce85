/**
 * A logger for tests that check no log lines. It writes to a file in the runtime folder, which is checked for
 * leaks after each test file.
 */
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'

const write =
  (level: string) =>
  (details: object, message?: string): void =>
    appendFileSync(
      join(String(process.env.XDG_RUNTIME_DIR), 'tests.log'),
      `${level} ${message} ${deepText(details)}\n`,
    )

export const runLog = {
  debug: write('debug'),
  info: write('info'),
  warn: write('warn'),
  error: write('error'),
}

/** Formats all properties of a value, including those that are not enumerable, such as an error's `cause`. */
export function deepText(value: unknown, seen = new Set<unknown>()): string {
  if (typeof value !== 'object' || value === null) return String(value)
  if (seen.has(value)) return ''
  seen.add(value)
  return Object.getOwnPropertyNames(value)
    .map((name) => `${name}: ${deepText((value as Record<string, unknown>)[name], seen)}`)
    .join('\n')
}
