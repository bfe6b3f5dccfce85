/** Work that several pulls wait for. It is cancelled when the last pull stops waiting. */
import { raceAbort } from '../../util/abort.ts'

export class SharedWork<T> {
  readonly work: T
  /** Settles when the work ends. */
  readonly ended: Promise<void>
  readonly #controller = new AbortController()
  #waiterCount = 0

  constructor(work: T, run: (signal: AbortSignal) => Promise<void>) {
    this.work = work
    this.ended = run(this.#controller.signal)
    // `join` reports a failure to the pulls that wait.
    this.ended.catch(() => {})
  }

  /** `false` after all pulls have stopped waiting, since the work is then cancelled. */
  get isJoinable(): boolean {
    return !this.#controller.signal.aborted
  }

  /** Waits for the work. Rejects with the signal's reason if the signal aborts first. */
  async join(signal: AbortSignal): Promise<void> {
    this.#waiterCount++
    try {
      await raceAbort(this.ended, signal)
    } finally {
      if (--this.#waiterCount === 0) this.#controller.abort(signal.reason)
    }
  }
}
