/** A program in a terminal, as a person would use it. Over `script`, which is there where util-linux is. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { until } from './processes.ts'

export const hasTerminal = spawnSync('script', ['--version']).stdout?.includes('util-linux') ?? false

export interface Terminal {
  /** What stands there, without what moves and colours it. */
  readonly text: () => string
  /** With all that. */
  readonly raw: () => string
  type(text: string): void
  /** Waits until it stands there, behind what was waited for before. */
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
        throw new Error(`Expected ${JSON.stringify(wanted)} behind ${seen} of ${JSON.stringify(text())}`)
      })
      seen = text().indexOf(wanted, seen) + wanted.length
    },
    exit: once(child, 'close').then(([code]) => code),
    kill: (signal) => child.kill(signal),
  }
}

/** Built of its code, which has no place in a pattern. */
const escapes = new RegExp(`${String.fromCharCode(27)}\\[[0-9;?]*[A-Za-z]`, 'g')
