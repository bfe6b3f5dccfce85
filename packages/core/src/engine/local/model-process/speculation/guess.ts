import type { Token } from 'node-llama-cpp'

/** Tokens that may follow an output, for one step to verify. */
export interface Guess {
  readonly tokens: readonly Token[]
  /** Estimated probability of each token, given that all tokens before it are right. */
  readonly hitRates: readonly number[]
}

/** Guesses the next tokens of one sequence. */
export interface GuessSource {
  /**
   * @param evaluated tokens in the KV state: the prompt and the output
   * @param last the last token of the output, which is not evaluated yet
   * @param maxCount maximum number of guessed tokens
   */
  guess(evaluated: readonly Token[], last: Token, maxCount: number): Guess
}

export const noGuess: Guess = { tokens: [], hitRates: [] }
