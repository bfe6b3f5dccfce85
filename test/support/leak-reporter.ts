/** Reads along what a run prints: its tests, their apps and commands, and itself. With a secret or a prompt among it, the run has failed. */
import type { Reporter } from 'vitest/node'
import { leaksIn } from './leaks.ts'

/** A leak may come in two pieces. */
const longestLeak = 200

export class LeakReporter implements Reporter {
  readonly #streams: readonly NodeJS.WriteStream[]
  readonly #leaks: string[] = []

  constructor(streams: readonly NodeJS.WriteStream[] = [process.stdout, process.stderr]) {
    this.#streams = streams
  }

  /** All workers are piped through here, and what is started in them is written to theirs. */
  onInit(): void {
    for (const stream of this.#streams) {
      const write = stream.write
      let last = ''
      stream.write = (chunk: string | Uint8Array, ...rest: unknown[]): boolean => {
        const text = last + (typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('latin1'))
        this.#leaks.push(...leaksIn(text))
        // What was found is not found again.
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
