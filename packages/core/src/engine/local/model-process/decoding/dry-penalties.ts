/**
 * Computes the DRY penalties of an output. They equal those of llama.cpp's sampler, except that a sequence breaker
 * is found in the text of the output, whatever its tokens.
 *
 * llama.cpp's sampler is not used: at its creation it searches the vocabulary for each breaker and tokenizes
 * pieces of the breaker. That takes seconds with some vocabularies, and crashes others.
 */
import type { Token } from 'node-llama-cpp'
import type { DryPenalty } from '../../../request.ts'

/** Stays finite as a 32-bit float, and outweighs any logit. */
const maxPenalty = 1e30

export class DryPenalties {
  readonly #options: Required<DryPenalty>
  readonly #textOf: (tokens: readonly Token[]) => string
  readonly #tokens: Token[] = []
  /** For each token, the number of tokens up to it that equal the last tokens of the output. */
  readonly #matches: number[] = []
  /** Number of last tokens in which a breaker can lie, since each token has at least one byte. */
  readonly #breakerReach: number
  /** Last tokens after the last breaker. */
  readonly #recent: Token[] = []
  #sinceBreaker = 0
  readonly #containsBreaker = new Map<Token, boolean>()

  /** @param options with `lastN` in tokens */
  constructor(options: Required<DryPenalty>, textOf: (tokens: readonly Token[]) => string) {
    this.#options = options
    this.#textOf = textOf
    this.#breakerReach = Math.max(0, ...options.breakers.map((breaker) => Buffer.byteLength(breaker)))
  }

  /** Adds a token to the output. */
  accept(token: Token): void {
    const [tokens, matches] = [this.#tokens, this.#matches]
    tokens.push(token)
    matches.push(0)
    // Backwards, since each number follows from the previous number of its neighbour.
    for (let at = tokens.length - 2; at >= this.#start; at--)
      matches[at] = tokens[at] === token ? (matches[at - 1] ?? 0) + 1 : 0
    this.#findBreaker(token)
  }

  /** Biases, all negative, of the tokens that would extend a repetition. */
  list(): readonly (readonly [token: Token, bias: number])[] {
    const { strength, base, allowedLength } = this.#options
    const longest = new Map<Token, number>()
    const [tokens, start] = [this.#tokens, this.#start]
    if (Math.min(this.#sinceBreaker, tokens.length - start) < allowedLength) return []
    for (let at = start; at < tokens.length - 1; at++) {
      const length = Math.min(this.#matches[at] as number, at - start + 1, this.#sinceBreaker)
      const next = tokens[at + 1] as Token
      if (length >= allowedLength && length > (longest.get(next) ?? 0)) longest.set(next, length)
    }
    return [...longest]
      .filter(([token]) => !this.#isBreaker(token))
      .map(([token, length]) => [token, -Math.min(strength * base ** (length - allowedLength), maxPenalty)])
  }

  /** Index of the first token that is searched for repetitions. */
  get #start(): number {
    return Math.max(0, this.#tokens.length - this.#options.lastN)
  }

  #findBreaker(token: Token): void {
    this.#sinceBreaker++
    if (this.#breakerReach === 0) return
    this.#recent.push(token)
    if (this.#recent.length > this.#breakerReach) this.#recent.shift()
    if (!this.#hasBreaker(this.#recent)) return
    this.#recent.length = 0
    this.#sinceBreaker = 0
  }

  #isBreaker(token: Token): boolean {
    const known = this.#containsBreaker.get(token)
    if (known !== undefined) return known
    const isBreaker = this.#hasBreaker([token])
    this.#containsBreaker.set(token, isBreaker)
    return isBreaker
  }

  #hasBreaker(tokens: readonly Token[]): boolean {
    const text = this.#textOf(tokens)
    return this.#options.breakers.some((breaker) => text.includes(breaker))
  }
}
