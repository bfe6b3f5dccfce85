/**
 * Tokenizes texts in slices, since the library's tokenizer blocks the event loop. The library tokenizes 4 MB
 * of text per second, but only 1 MB of text that has no spaces.
 */
import { setImmediate } from 'node:timers/promises'
import type { Token } from 'node-llama-cpp'
import { contextLengthExceeded, LlmError } from '../../../../errors.ts'

/** Length of a slice in characters. A slice takes about 10 ms, at worst 40 ms. */
const sliceLength = 32 * 1024
/** Limit on the tokenizing time of one text. The time between its slices does not count. */
const deadlineMs = 5_000

export interface TokenizedText {
  readonly tokens: readonly Token[]
  /** Tokenizing time. */
  readonly ms: number
}

/** Tokenizes in another process what must not be tokenized in this one. */
export interface TokenizerIsolation {
  isNeeded(text: string): boolean
  /**
   * Resolves without tokens when the signal aborts. Throws `invalid_request` for a text that cannot be
   * tokenized.
   */
  tokenize(text: string, signal: AbortSignal): Promise<TokenizedText>
}

export class Tokenizer {
  readonly #tokenize: (text: string) => readonly Token[]
  readonly #contextSize: number
  readonly #isolation: TokenizerIsolation | undefined
  readonly #boundary: SliceBoundary | undefined
  #queue: Promise<unknown> = Promise.resolve()

  /** @param tokenize the library's tokenizer */
  constructor(
    tokenize: (text: string) => readonly Token[],
    contextSize: number,
    isolation?: TokenizerIsolation,
  ) {
    this.#tokenize = tokenize
    this.#contextSize = contextSize
    this.#isolation = isolation
    this.#boundary = boundaries.find(({ rest }) => {
      const joined = [...tokenize('word'), ...tokenize(rest)]
      const whole = tokenize('word word')
      return joined.length === whole.length && joined.every((token, index) => token === whole[index])
    })
  }

  /**
   * Throws an `LlmError` `context_length` with an estimated token count if the text is far longer than the
   * context. When the signal aborts, returns the tokens so far.
   * @param stopAfter stops after at least this many tokens, instead of throwing for a long text
   */
  async tokenize(text: string, signal: AbortSignal, stopAfter?: number): Promise<readonly Token[]> {
    const tokens: Token[] = []
    let workMs = 0
    let isExact = true
    for (let start = 0; start < text.length && !signal.aborted; ) {
      const boundaryAt = text.length - start > sliceLength ? this.#findBoundary(text, start) : text.length
      isExact &&= boundaryAt !== undefined
      const end = boundaryAt ?? alignToCharacter(text, start + sliceLength)
      const slice = await this.#tokenizeSlice(text.slice(start, end), signal)
      workMs += slice.ms
      for (const token of slice.tokens) tokens.push(token)
      if (stopAfter !== undefined && tokens.length >= stopAfter) return tokens
      if (stopAfter === undefined && tokens.length > 2 * this.#contextSize && end < text.length)
        throw contextLengthExceeded(Math.round((tokens.length * text.length) / end), this.#contextSize)
      if (workMs > deadlineMs) throw tokenizationTooSlow()
      start = end + (isExact && end < text.length ? (this.#boundary?.skip ?? 0) : 0)
    }
    return isExact || signal.aborted ? tokens : (await this.#tokenizeSlice(text, signal)).tokens
  }

  #tokenizeSlice(text: string, signal: AbortSignal): Promise<TokenizedText> {
    return this.#isolation?.isNeeded(text)
      ? this.#isolation.tokenize(text, signal)
      : this.#tokenizeInTurn(text)
  }

  /**
   * Queues the slices of all calls. One slice runs per turn of the event loop, and the model decodes in
   * between.
   */
  #tokenizeInTurn(text: string): Promise<TokenizedText> {
    const slice = this.#queue.then(async () => {
      await setImmediate()
      const startedAt = performance.now()
      try {
        const tokens = this.#tokenize(text)
        return { tokens, ms: performance.now() - startedAt }
      } catch (cause) {
        throw textNotTokenizable(cause)
      }
    })
    this.#queue = slice.catch(() => {})
    return slice
  }

  /** Finds a position at which the text can be split without changing its tokens. */
  #findBoundary(text: string, start: number): number | undefined {
    for (let index = start + sliceLength; this.#boundary && index > start + 1; index--) {
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

const tokenizationTooSlow = (): LlmError =>
  new LlmError(
    'invalid_request',
    'The text takes too long to tokenize. Send less text, or text with spaces.',
    { param: 'messages' },
  )

/** @param cause exception of llama.cpp */
export const textNotTokenizable = (cause: unknown): LlmError =>
  new LlmError('invalid_request', "llama.cpp's tokenizer rejects the text. Send another text.", {}, { cause })
