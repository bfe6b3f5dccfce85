import type { Token } from 'node-llama-cpp'
import { type Guess, type GuessSource, noGuess } from './guess.ts'
import type { HitRates } from './hit-rates.ts'

/** Number of last tokens that must occur earlier. Shorter matches are mostly chance. */
const minMatch = 4
/** Matches are compared up to this length. */
const maxMatch = 64

/**
 * Guesses that an output continues to repeat a passage of its prompt or of itself (Saxena, "Prompt Lookup
 * Decoding", 2023).
 */
export class PromptLookup implements GuessSource {
  readonly #hitRates: HitRates
  /** The prompt and the output. */
  readonly #tokens: Token[] = []
  /** Position of the token that the next token is expected to equal. */
  #next = 0
  /** Number of last tokens that equal the tokens before `#next`. 0 without a match. */
  #matchLength = 0

  constructor(hitRates: HitRates) {
    this.#hitRates = hitRates
  }

  guess(evaluated: readonly Token[], last: Token, maxCount: number): Guess {
    for (let at = this.#tokens.length; at < evaluated.length; at++) this.#accept(evaluated[at] as Token)
    this.#accept(last)
    if (this.#matchLength === 0) this.#findLongestMatch()
    return this.#matchLength === 0 ? noGuess : this.#continueMatch(maxCount)
  }

  #accept(token: Token): void {
    if (this.#matchLength > 0) {
      const isHit = token === this.#tokens[this.#next]
      this.#hitRates.record(this.#matchLength, isHit)
      this.#matchLength = isHit ? this.#matchLength + 1 : 0
      this.#next++
    }
    this.#tokens.push(token)
  }

  /** Finds the longest earlier match of the last tokens. Of equally long ones, the latest is taken. */
  #findLongestMatch(): void {
    const tokens = this.#tokens
    const end = tokens.length - 1
    let longest = minMatch - 1
    for (let at = end - 1; at >= longest && longest < maxMatch; at--) {
      let length = 0
      while (length < maxMatch && length <= at && tokens[at - length] === tokens[end - length]) length++
      if (length <= longest) continue
      longest = length
      this.#matchLength = length
      this.#next = at + 1
    }
  }

  #continueMatch(maxCount: number): Guess {
    const tokens: Token[] = []
    const hitRates: number[] = []
    for (let index = 0; index < maxCount; index++) {
      const at = this.#next + index
      // A match that reaches the end of the output is a loop, so the guess continues with itself.
      tokens.push((this.#tokens[at] ?? tokens[at - this.#tokens.length]) as Token)
      hitRates.push(this.#hitRates.rateAt(this.#matchLength + index))
    }
    return { tokens, hitRates }
  }
}
