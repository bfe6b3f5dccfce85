/** Bounds the number and the total size of calls in the engine, running and queued. */
import { LlmError } from '../../../errors.ts'

/** The default of Ollama's `OLLAMA_MAX_QUEUE`. */
const maxCalls = 512
/** Total size of all running and queued requests, in characters. */
const maxCharacters = 64 * 1024 * 1024

export class CallCap {
  #calls = 0
  #characters = 0

  /** Throws an `LlmError` `overloaded` at once when a bound is exceeded. */
  async run<T>(characters: number, task: () => Promise<T>): Promise<T> {
    if (this.#calls >= maxCalls || this.#characters + characters > maxCharacters)
      throw new LlmError('overloaded', 'Too many calls are waiting. Try again later.', {
        retryAfterMs: 5_000,
      })
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
