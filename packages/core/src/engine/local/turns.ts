/**
 * Which model's calls are let in: those of one, side by side, then those of the next, in order of arrival.
 * Who leaves the queue never gets in.
 */
import { LlmError } from '../../errors.ts'

/** As many as Ollama lets wait. */
const maxCalls = 512
/** Of all of them, in characters: books, not libraries. */
const maxSize = 64 * 1024 * 1024

/** What a call wants, given what the calls inside have. Those with the same get in together. */
export type KeyOf = (current: string | undefined) => string

interface Waiting {
  readonly keyOf: KeyOf
  enter(): void
}

export class Turns {
  #waiting: Waiting[] = []
  #key: string | undefined
  #inside = 0
  #calls = 0
  #size = 0

  /**
   * Resolves with the way out, or with nothing once the signal has aborted. Throws `overloaded`.
   * @param size of what has to be held meanwhile
   */
  async take(signal: AbortSignal, keyOf: KeyOf, size = 0): Promise<(() => void) | undefined> {
    if (signal.aborted) return undefined
    if (this.#calls >= maxCalls || this.#size + size > maxSize)
      throw new LlmError('overloaded', 'Too many calls are waiting already.', { retryAfterMs: 5_000 })
    this.#calls++
    this.#size += size
    const leave = (): void => {
      this.#calls--
      this.#size -= size
    }
    if (!(await this.#entered(signal, keyOf, leave))) return undefined
    return () => {
      leave()
      this.#inside--
      this.#admit()
    }
  }

  #entered(signal: AbortSignal, keyOf: KeyOf, onLeave: () => void): Promise<boolean> {
    return new Promise((resolve) => {
      const leave = (): void => {
        this.#waiting = this.#waiting.filter((one) => one !== waiting)
        onLeave()
        resolve(false)
        // Others may have waited for this one's model.
        this.#admit()
      }
      const waiting: Waiting = {
        keyOf,
        enter: () => {
          signal.removeEventListener('abort', leave)
          resolve(true)
        },
      }
      signal.addEventListener('abort', leave, { once: true })
      this.#waiting.push(waiting)
      this.#admit()
    })
  }

  /** Nobody overtakes: who wants another model would wait for ever. */
  #admit(): void {
    for (;;) {
      const [next] = this.#waiting
      if (!next) return
      const key = next.keyOf(this.#key)
      if (this.#inside > 0 && key !== this.#key) return
      this.#waiting.shift()
      this.#key = key
      this.#inside++
      next.enter()
    }
  }
}
