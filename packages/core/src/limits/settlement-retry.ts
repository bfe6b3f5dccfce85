/** What calls have settled while the database was away: it is settled when that is back. */
import { UncertainOutcome } from '../storage/database.ts'

type Correction = () => Promise<void>

export class Corrections {
  readonly #missing = new Set<Correction>()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  /** Rejects where it fails now, and repeats it until it has happened once. What may have happened is not repeated. */
  async make(correction: Correction): Promise<void> {
    try {
      await correction()
    } catch (cause) {
      this.#keep(correction, cause)
      throw cause
    }
  }

  /** Never rejects. One that fails is the sign that the others would. */
  async repeat(): Promise<void> {
    for (const correction of this.#missing) {
      // Whoever comes in between does not make it, too.
      this.#missing.delete(correction)
      try {
        await correction()
      } catch (cause) {
        this.#keep(correction, cause)
        return
      }
    }
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Tries once more. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.repeat()
    clearInterval(this.#timer)
  }

  #keep(correction: Correction, cause: unknown): void {
    if (cause instanceof UncertainOutcome) return
    this.#missing.add(correction)
    if (!this.#isClosed) this.#timer ??= setInterval(() => void this.repeat(), repeatEveryMs).unref()
  }
}

const repeatEveryMs = 5_000
