/** What calls have settled while the database was away: it is settled when that is back. */
import { UncertainOutcome } from '../storage/database.ts'

type Settlement = () => Promise<void>

export class SettlementRetry {
  readonly #pending = new Set<Settlement>()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  /** Rejects where it fails now, and repeats it until it has happened once. What may have happened is not repeated. */
  async run(settlement: Settlement): Promise<void> {
    try {
      await settlement()
    } catch (cause) {
      this.#retryLater(settlement, cause)
      throw cause
    }
  }

  /** Never rejects. One that fails is the sign that the others would. */
  async retry(): Promise<void> {
    for (const settlement of this.#pending) {
      // Whoever comes in between does not make it, too.
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

  /** Tries once more. */
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
