/** A check that many requests share: it runs once at a time, and its result is kept for some time. */
import { withTimeout } from '../util/with-timeout.ts'

/** Returns the problem that it has found. Its signal aborts at the deadline. */
export type Check = (signal: AbortSignal) => Promise<string | undefined>

export interface SharedCheckOptions {
  /** How long a caller waits for a result, in ms. */
  readonly deadlineMs: number
  /** How long a result is kept, in ms. */
  readonly keptMs: number
}

interface Result {
  readonly problem: string | undefined
  readonly at: number
}

export class SharedCheck {
  readonly #options: SharedCheckOptions
  #running: Promise<Result> | undefined
  #last: Result | undefined

  constructor(options: SharedCheckOptions) {
    this.#options = options
  }

  /**
   * Resolves with the problem, or with undefined. A check that exceeds the deadline is a problem, and runs on alone.
   *
   * @param check runs if none is running and there is no recent result
   */
  async run(check: Check): Promise<string | undefined> {
    const { deadlineMs, keptMs } = this.#options
    if (this.#last && performance.now() - this.#last.at < keptMs) return this.#last.problem
    this.#running ??= this.#start(check).finally(() => {
      this.#running = undefined
    })
    const result = await withTimeout(this.#running, deadlineMs)
    return result ? result.problem : noResult(deadlineMs)
  }

  async #start(check: Check): Promise<Result> {
    let problem: string | undefined
    try {
      // Earlier than the deadline, so that the check can still say what it waited for.
      problem = await check(AbortSignal.timeout(0.9 * this.#options.deadlineMs))
    } catch (error) {
      problem = error instanceof Error ? error.message : String(error)
    }
    this.#last = { problem, at: performance.now() }
    return this.#last
  }
}

/** The problem of a check that exceeds its deadline. */
export const noResult = (deadlineMs: number): string => `No result within ${deadlineMs / 1_000} s.`
