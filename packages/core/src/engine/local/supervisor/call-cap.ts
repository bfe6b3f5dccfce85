/** How many calls there may be at once, inside and waiting, and how much of them has to be held. */
import { LlmError } from '../../../errors.ts'

/** As many as Ollama lets wait. */
const maxCalls = 512
/** Of all of them, in characters: books, not libraries. */
const maxSize = 64 * 1024 * 1024

export class Crowd {
  #calls = 0
  #size = 0

  /** Throws `overloaded` at once when it is too much. */
  async with<T>(size: number, work: () => Promise<T>): Promise<T> {
    if (this.#calls >= maxCalls || this.#size + size > maxSize)
      throw new LlmError('overloaded', 'Too many calls are waiting already.', { retryAfterMs: 5_000 })
    this.#calls++
    this.#size += size
    try {
      return await work()
    } finally {
      this.#calls--
      this.#size -= size
    }
  }
}
