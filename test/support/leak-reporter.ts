/**
 * Checks all output of a test run for leaks, including the output of apps and commands that tests start. A
 * secret or a prompt in the output fails the run.
 */
import type { Reporter } from 'vitest/node'
import { leaksIn } from './leaks.ts'

/** Characters kept from the previous chunk, because a leak may be split between two chunks. */
const longestLeak = 200

export class LeakReporter implements Reporter {
  readonly #streams: readonly NodeJS.WriteStream[]
  readonly #leaks: string[] = []

  constructor(streams: readonly NodeJS.WriteStream[] = [process.stdout, process.stderr]) {
    this.#streams = streams
  }

  /** Output of the test workers and of their child processes is piped through these streams. */
  onInit(): void {
    for (const stream of this.#streams) {
      const write = stream.write
      let last = ''
      stream.write = (chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
        const text = last + (typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('latin1'))
        this.#leaks.push(...leaksIn(text))
        // A leak that was reported must not be found again.
        last = leaksIn(text).length > 0 ? '' : text.slice(-longestLeak)
        return Reflect.apply(write, stream, [chunk, ...rest])
      }
    }
  }

  onTestRunEnd(): void {
    if (this.#leaks.length === 0) return
    process.exitCode = 1
    this.#streams[0]?.write(`A secret or a prompt was printed: ${[...new Set(this.#leaks)].join(', ')}\n`)
  }
}
