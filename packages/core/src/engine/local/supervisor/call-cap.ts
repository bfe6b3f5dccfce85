/** How many calls there may be at once, inside and waiting, and how much of them has to be held. */
import { LlmError } from '../../../errors.ts'

/** As many as Ollama lets wait. */
const maxCalls = 512
/** Of all of them, in characters: books, not libraries. */
const maxCharacters = 64 * 1024 * 1024

export class CallCap {
  #calls = 0
  #characters = 0

  /** Throws `overloaded` at once when it is too much. */
  async run<T>(characters: number, task: () => Promise<T>): Promise<T> {
    if (this.#calls >= maxCalls || this.#characters + characters > maxCharacters)
      throw new LlmError('overloaded', 'Too many calls are waiting already.', { retryAfterMs: 5_000 })
    this.#calls++
    this.#characters += characters
    try {
      return await task()
    } finally {
      this.#calls--
      this.#characters -= characters
    }
  }
}
