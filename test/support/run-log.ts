/** A logger for tests that look at no log themselves: its lines are a file of the run folder, which is read for leaks at the end. */
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'

const write =
  (level: string) =>
  (details: object, message?: string): void =>
    appendFileSync(
      join(String(process.env.XDG_RUNTIME_DIR), 'tests.log'),
      `${level} ${message} ${deepText(details)}\n`,
    )

export const runLog = { debug: write('debug'), warn: write('warn'), error: write('error') }

/** Also what is not enumerable, as the message, stack and cause of an error are. */
export function deepText(value: unknown, seen = new Set<unknown>()): string {
  if (typeof value !== 'object' || value === null) return String(value)
  if (seen.has(value)) return ''
  seen.add(value)
  return Object.getOwnPropertyNames(value)
    .map((name) => `${name}: ${deepText((value as Record<string, unknown>)[name], seen)}`)
    .join('\n')
}
