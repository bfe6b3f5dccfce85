/** Runs a program in a pseudoterminal, by the command `script` of util-linux. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { until } from './processes.ts'

export const hasTerminal = spawnSync('script', ['--version']).stdout?.includes('util-linux') ?? false

export interface Terminal {
  /** The output without escape sequences. */
  readonly text: () => string
  /** The output with escape sequences. */
  readonly raw: () => string
  type(text: string): void
  /** Waits until the output contains a text after the text of the previous `shows()`. */
  shows(text: string): Promise<void>
  readonly exit: Promise<unknown>
  kill(signal: NodeJS.Signals): boolean
}

export function inTerminal(command: readonly string[], env: NodeJS.ProcessEnv, limitMs = 10_000): Terminal {
  const line = command.map((word) => `'${word}'`).join(' ')
  const child = spawn('script', ['-qefc', line, '/dev/null'], {
    env: { ...process.env, ...env, SHELL: '/bin/sh' },
  })
  let screen = ''
  let seen = 0
  child.stdout.on('data', (chunk) => {
    screen += chunk
  })
  const text = (): string => screen.replaceAll(escapes, '')
  return {
    text,
    raw: () => screen,
    type: (typed) => child.stdin.write(typed),
    shows: async (wanted) => {
      await until(() => text().includes(wanted, seen), limitMs).catch(() => {
        throw new Error(`Expected ${JSON.stringify(wanted)} at ${seen} or later in ${JSON.stringify(text())}`)
      })
      seen = text().indexOf(wanted, seen) + wanted.length
    },
    exit: once(child, 'close').then(([code]) => code),
    kill: (signal) => child.kill(signal),
  }
}

/**
 * ANSI escape sequences. The escape character is built from its code, because linters reject it in a literal
 * pattern.
 */
const escapes = new RegExp(`${String.fromCharCode(27)}\\[[0-9;?]*[A-Za-z]`, 'g')
