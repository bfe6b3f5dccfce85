/** One at a time, in order of arrival. Who leaves the queue never gets a turn. */
import { LlmError } from '../../errors.ts'

/** As many as Ollama lets wait. */
const maxWaiting = 512
/** Of all that wait, in characters: books, not libraries. */
const maxWaitingSize = 64 * 1024 * 1024

export class Turns {
  readonly #waiting: (() => void)[] = []
  #waitingSize = 0
  #taken = false

  /**
   * Resolves with the way to end the turn, or with nothing once the signal has aborted. Throws `overloaded`.
   * @param size of what has to be held meanwhile
   */
  async take(signal: AbortSignal, size = 0): Promise<(() => void) | undefined> {
    if (signal.aborted) return undefined
    if (this.#taken) {
      if (this.#waiting.length >= maxWaiting || this.#waitingSize + size > maxWaitingSize) {
        throw new LlmError('overloaded', 'Too many calls are waiting already.', { retryAfterMs: 5_000 })
      }
      this.#waitingSize += size
      const called = await this.#called(signal)
      this.#waitingSize -= size
      if (!called) return undefined
    }
    this.#taken = true
    return () => this.#next()
  }

  #called(signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(call), 1)
        resolve(false)
      }
      const call = (): void => {
        signal.removeEventListener('abort', leave)
        resolve(true)
      }
      signal.addEventListener('abort', leave, { once: true })
      this.#waiting.push(call)
    })
  }

  /** The turn goes straight to the next in line: nobody may come between. */
  #next(): void {
    const call = this.#waiting.shift()
    if (call) call()
    else this.#taken = false
  }
}
