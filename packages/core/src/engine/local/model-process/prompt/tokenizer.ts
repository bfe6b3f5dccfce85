/** Text to tokens, in slices: the library's tokenizer blocks, at 4 MB a second, or 1 where a text has no spaces. */
import { setImmediate } from 'node:timers/promises'
import type { Token } from 'node-llama-cpp'
import { contextLengthExceeded, LlmError } from '../../../../errors.ts'

/** In characters: some 10 ms of work, 40 at worst. */
const sliceLength = 32 * 1024
/** Of work on one text. */
const deadlineMs = 5_000

export class Tokenizer {
  readonly #tokenize: (text: string) => readonly Token[]
  readonly #contextSize: number
  readonly #boundary: SliceBoundary | undefined
  #queue: Promise<unknown> = Promise.resolve()

  /** @param tokenize the library's own */
  constructor(tokenize: (text: string) => readonly Token[], contextSize: number) {
    this.#tokenize = tokenize
    this.#contextSize = contextSize
    this.#boundary = boundaries.find(({ rest }) => {
      const joined = [...tokenize('word'), ...tokenize(rest)]
      const whole = tokenize('word word')
      return joined.length === whole.length && joined.every((token, index) => token === whole[index])
    })
  }

  /**
   * Throws `context_length`, with an estimate, for a text that is far longer than the context. What was found so far
   * when the signal aborts.
   * @param stopAfter so many tokens are enough, or a few more; then no text is too long
   */
  async tokenize(text: string, signal: AbortSignal, stopAfter?: number): Promise<readonly Token[]> {
    const tokens: Token[] = []
    let workMs = 0
    let isExact = true
    for (let start = 0; start < text.length && !signal.aborted; ) {
      const boundaryAt = text.length - start > sliceLength ? this.#findBoundary(text, start) : text.length
      isExact &&= boundaryAt !== undefined
      const end = boundaryAt ?? alignToCharacter(text, start + sliceLength)
      const slice = await this.#tokenizeSlice(text.slice(start, end))
      workMs += slice.ms
      for (const token of slice.tokens) tokens.push(token)
      if (stopAfter !== undefined && tokens.length >= stopAfter) return tokens
      // Far too long: the rest is not worth the time.
      if (stopAfter === undefined && tokens.length > 2 * this.#contextSize && end < text.length)
        throw contextLengthExceeded(Math.round((tokens.length * text.length) / end), this.#contextSize)
      if (workMs > deadlineMs) throw tokenizationTooSlow()
      start = end + (isExact && end < text.length ? (this.#boundary?.skip ?? 0) : 0)
    }
    return isExact || signal.aborted ? tokens : (await this.#tokenizeSlice(text)).tokens
  }

  /** One slice in one turn of the event loop, whoever asks: between two of them the model takes its steps. */
  #tokenizeSlice(text: string): Promise<{ readonly tokens: readonly Token[]; readonly ms: number }> {
    const slice = this.#queue.then(async () => {
      await setImmediate()
      const startedAt = performance.now()
      const tokens = this.#tokenize(text)
      return { tokens, ms: performance.now() - startedAt }
    })
    this.#queue = slice.catch(() => {})
    return slice
  }

  /** Where a slice may end, so that tokens come out as they do in one go. */
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

/** A slice ends behind a word. */
interface SliceBoundary {
  /** What follows there. */
  readonly separators: string
  /** So many characters are left out. */
  readonly skip: number
  /** What is left of a second word. */
  readonly rest: string
}

/** A tokenizer either takes a space as it comes, or puts one before whatever it is given. */
const boundaries: readonly SliceBoundary[] = [
  { separators: ' \n', skip: 0, rest: ' word' },
  { separators: ' ', skip: 1, rest: 'word' },
]

const isWord = (character = ''): boolean => /[\p{L}\p{N}]/u.test(character)

/** Not between the two halves of one. */
const alignToCharacter = (text: string, end: number): number =>
  /[\uD800-\uDBFF]/.test(text[end - 1] ?? '') ? end - 1 : end

const tokenizationTooSlow = (): LlmError =>
  new LlmError('invalid_request', 'The text takes too much time to be read.', { param: 'messages' })
