/** Retries settlements that failed while the database was unavailable. */
import { UncertainOutcome } from '../storage/database.ts'

type Settlement = () => Promise<void>

export class SettlementRetry {
  readonly #pending = new Set<Settlement>()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  /**
   * Runs a settlement. When it fails, `run` rejects, and a timer retries the settlement every 5 s until it
   * succeeds. An `UncertainOutcome` is not retried, because the settlement may have succeeded.
   */
  async run(settlement: Settlement): Promise<void> {
    try {
      await settlement()
    } catch (cause) {
      this.#retryLater(settlement, cause)
      throw cause
    }
  }

  /**
   * Retries the failed settlements. Stops at the first failure, since the others would fail, too. Never
   * rejects.
   */
  async retry(): Promise<void> {
    for (const settlement of this.#pending) {
      // Removed first, so that a concurrent retry does not run it again.
      this.#pending.delete(settlement)
      try {
        await settlement()
      } catch (cause) {
        this.#retryLater(settlement, cause)
        return
      }
    }
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Retries the failed settlements once more, and stops the timer. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.retry()
    clearInterval(this.#timer)
  }

  #retryLater(settlement: Settlement, cause: unknown): void {
    if (cause instanceof UncertainOutcome) return
    this.#pending.add(settlement)
    if (!this.#isClosed) this.#timer ??= setInterval(() => void this.retry(), retryEveryMs).unref()
  }
}

const retryEveryMs = 5_000
