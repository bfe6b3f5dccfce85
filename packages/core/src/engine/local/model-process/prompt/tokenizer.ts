/**
 * Tokenizes texts in slices, since the library's tokenizer blocks the event loop. The library tokenizes 4 MB
 * of text per second, but only 1 MB of text that has no spaces.
 */
import type { Token } from 'node-llama-cpp'
import { contextLengthExceeded, LlmError } from '../../../../errors.ts'
import type { CpuBudget } from '../workers/cpu-budget.ts'
import type { Turns } from '../workers/turns.ts'

/** Maximum length of a slice in characters. A slice takes about 2 ms, at worst 10 ms. */
const sliceLength = 8 * 1024
/** Length of a text in characters that usually takes about 1 ms. */
const shortLength = 4 * 1024
/** Length of the text in characters from which on the token count of a long text is estimated. */
const minEstimatedLength = 32 * 1024

/** Tokenizes in another process what must not be tokenized in this one. */
export interface TokenizerIsolation {
  isNeeded(text: string): boolean
  /** Length of the longest prefix that has few enough special tokens. */
  limitSlice(text: string): number
  /** Whether the time for the text depends on its length only, and not on special tokens. */
  isUniform(text: string): boolean
  /**
   * Charges the budget. Resolves without tokens when its signal aborts. Throws `invalid_request` for a text
   * that cannot be tokenized.
   */
  tokenize(text: string, budget: CpuBudget): Promise<readonly Token[]>
}

export class Tokenizer {
  readonly #tokenize: (text: string) => readonly Token[]
  readonly #contextSize: number
  readonly #isolation: TokenizerIsolation | undefined
  readonly #boundary: SliceBoundary | undefined
  readonly #turns: Turns

  /**
   * @param tokenize the library's tokenizer
   * @param turns shared by all tokenizers of the model
   */
  constructor(
    tokenize: (text: string) => readonly Token[],
    contextSize: number,
    turns: Turns,
    isolation?: TokenizerIsolation,
  ) {
    this.#tokenize = tokenize
    this.#contextSize = contextSize
    this.#turns = turns
    this.#isolation = isolation
    this.#boundary = boundaries.find(({ rest }) => {
      const joined = [...tokenize('word'), ...tokenize(rest)]
      const whole = tokenize('word word')
      return joined.length === whole.length && joined.every((token, index) => token === whole[index])
    })
  }

  /**
   * Throws an `LlmError` `context_length` with an estimated token count if the text is far longer than the
   * context, or `invalid_request` if the call has no CPU time left. When the signal aborts, returns the tokens
   * so far.
   * @param stopAfter stops after at least this many tokens, instead of throwing for a long text
   */
  async tokenize(text: string, budget: CpuBudget, stopAfter?: number): Promise<readonly Token[]> {
    const { signal } = budget
    const maxTokens = stopAfter ?? 2 * this.#contextSize
    const tokens: Token[] = []
    let isExact = true
    /** Length of the text before the first slice without a boundary, and number of its tokens. */
    let exact = { length: 0, tokens: 0 }
    for (let start = 0; start < text.length && !signal.aborted; ) {
      const boundaryAt = this.#findSliceEnd(text, start)
      isExact &&= boundaryAt !== undefined
      const end = boundaryAt ?? alignToCharacter(text, start + sliceLength)
      for (const token of await this.#tokenizeSlice(text.slice(start, end), budget)) tokens.push(token)
      if (stopAfter !== undefined && tokens.length >= stopAfter) return tokens
      const estimate = Math.round((tokens.length * text.length) / end)
      const isTooLong = tokens.length > maxTokens && end < text.length
      if (isTooLong && end >= minEstimatedLength) throw contextLengthExceeded(estimate, this.#contextSize)
      budget.throwIfSpent()
      // Without a boundary, the rest is tokenized at once, unless further slices may show that it is too long.
      if (!isExact && estimate <= maxTokens) break
      start = end + (isExact && end < text.length ? (this.#boundary?.skip ?? 0) : 0)
      if (isExact) exact = { length: start, tokens: tokens.length }
    }
    if (isExact || signal.aborted) return tokens
    const rest = await this.#tokenizeSlice(text.slice(exact.length), budget)
    return [...tokens.slice(0, exact.tokens), ...rest]
  }

  #tokenizeSlice(text: string, budget: CpuBudget): Promise<readonly Token[]> {
    return this.#isolation?.isNeeded(text)
      ? this.#isolation.tokenize(text, budget)
      : this.#tokenizeInTurn(text, budget)
  }

  /** Queues the slices of all calls. */
  async #tokenizeInTurn(text: string, budget: CpuBudget): Promise<readonly Token[]> {
    const tokenize = (): readonly Token[] => {
      try {
        return this.#tokenize(text)
      } catch (cause) {
        throw textNotTokenizable(cause)
      }
    }
    const isShort = text.length <= shortLength && this.#isolation?.isUniform(text) !== false
    return (await this.#turns.run(budget, tokenize, isShort)) ?? []
  }

  /** Returns a position at which the text can be split without changing its tokens, or `undefined` if there is none. */
  #findSliceEnd(text: string, start: number): number | undefined {
    const rest = text.slice(start, start + sliceLength)
    const length = this.#isolation?.limitSlice(rest) ?? rest.length
    const end = length < rest.length ? this.#findBoundary(text, start, start + length - 1) : undefined
    if (end !== undefined) return end
    return text.length - start > sliceLength
      ? this.#findBoundary(text, start, start + sliceLength)
      : text.length
  }

  /** Returns the last such position up to `last`, or `undefined` if there is none. */
  #findBoundary(text: string, start: number, last: number): number | undefined {
    for (let index = last; this.#boundary && index > start + 1; index--) {
      if (
        this.#boundary.separators.includes(text[index] ?? '') &&
        isWord(text[index - 1]) &&
        isWord(text[index + 1])
      )
        return index
    }
    return undefined
  }
}

/** Rule for ending a slice after a word. */
interface SliceBoundary {
  /** Characters that may follow the word. */
  readonly separators: string
  /** Number of characters that are skipped before the next slice. */
  readonly skip: number
  /** The second slice, if this rule splits `word word`. */
  readonly rest: string
}

/** A tokenizer either keeps a leading space, or adds one to every text. */
const boundaries: readonly SliceBoundary[] = [
  { separators: ' \n', skip: 0, rest: ' word' },
  { separators: ' ', skip: 1, rest: 'word' },
]

const isWord = (character = ''): boolean => /[\p{L}\p{N}]/u.test(character)

/** Moves the end of a slice out of a surrogate pair. */
const alignToCharacter = (text: string, end: number): number =>
  /[\uD800-\uDBFF]/.test(text[end - 1] ?? '') ? end - 1 : end

/** @param cause exception of llama.cpp */
export const textNotTokenizable = (cause: unknown): LlmError =>
  new LlmError('invalid_request', "llama.cpp's tokenizer rejects the text. Send another text.", {}, { cause })
