/** Work with several waiters, cancelled when the last one leaves. */
import { raceAbort } from '../../util/abort.ts'

export class SharedWork<T> {
  readonly work: T
  /** Settles with the work. */
  readonly ended: Promise<void>
  readonly #controller = new AbortController()
  #waiterCount = 0

  constructor(work: T, run: (signal: AbortSignal) => Promise<void>) {
    this.work = work
    this.ended = run(this.#controller.signal)
    // `join` reports the failure to waiters.
    this.ended.catch(() => {})
  }

  /** `false` once all waiters have left: the work is being cancelled. */
  get isJoinable(): boolean {
    return !this.#controller.signal.aborted
  }

  /** Settles with the work, or rejects with the signal's reason. */
  async join(signal: AbortSignal): Promise<void> {
    this.#waiterCount++
    try {
      await raceAbort(this.ended, signal)
    } finally {
      if (--this.#waiterCount === 0) this.#controller.abort(signal.reason)
    }
  }
}
