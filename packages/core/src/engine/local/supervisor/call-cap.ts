/** Bounds the number and the total size of calls in the engine, running and queued. */
import { LlmError } from '../../../errors.ts'

export interface CallCapOptions {
  readonly maxCalls: number
  /** Total length of the prompts of all running and queued requests, in characters. */
  readonly maxPromptCharacters: number
}

export class CallCap {
  readonly #options: CallCapOptions
  #calls = 0
  #characters = 0

  constructor(options: CallCapOptions) {
    this.#options = options
  }

  /** Throws an `LlmError` `overloaded` at once when a bound is exceeded. */
  async run<T>(characters: number, task: () => Promise<T>): Promise<T> {
    const { maxCalls, maxPromptCharacters } = this.#options
    if (this.#calls >= maxCalls || this.#characters + characters > maxPromptCharacters)
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
