/** Text to tokens, in slices: the library's tokenizer blocks, at 4 MB a second, or 1 where a text has no spaces. */
import { setImmediate } from 'node:timers/promises'
import type { Token } from 'node-llama-cpp'
import { contextLength, LlmError } from '../../../../errors.ts'

/** In characters: some 10 ms of work, 40 at worst. */
const sliceLength = 32 * 1024
/** Of work on one text. */
const deadlineMs = 5_000

export class Tokenizer {
  readonly #tokenize: (text: string) => readonly Token[]
  readonly #contextSize: number
  readonly #cut: Cut | undefined
  #last: Promise<unknown> = Promise.resolve()

  /** @param tokenize the library's own */
  constructor(tokenize: (text: string) => readonly Token[], contextSize: number) {
    this.#tokenize = tokenize
    this.#contextSize = contextSize
    this.#cut = cuts.find(({ rest }) => {
      const joined = [...tokenize('word'), ...tokenize(rest)]
      const whole = tokenize('word word')
      return joined.length === whole.length && joined.every((token, index) => token === whole[index])
    })
  }

  /**
   * Throws `context_length`, with an estimate, for a text that is far longer than the context. What was found so far
   * when the signal aborts.
   * @param enough so many tokens are enough, or a few more; then no text is too long
   */
  async tokens(text: string, signal: AbortSignal, enough?: number): Promise<readonly Token[]> {
    const tokens: Token[] = []
    let workMs = 0
    let isExact = true
    for (let start = 0; start < text.length && !signal.aborted; ) {
      const place = text.length - start > sliceLength ? this.#placeIn(text, start) : text.length
      isExact &&= place !== undefined
      const end = place ?? wholeCharacters(text, start + sliceLength)
      const slice = await this.#slice(text.slice(start, end))
      workMs += slice.ms
      for (const token of slice.tokens) tokens.push(token)
      if (enough !== undefined && tokens.length >= enough) return tokens
      // Far too long: the rest is not worth the time.
      if (enough === undefined && tokens.length > 2 * this.#contextSize && end < text.length)
        throw contextLength(Math.round((tokens.length * text.length) / end), this.#contextSize)
      if (workMs > deadlineMs) throw tooMuchTime()
      start = end + (isExact && end < text.length ? (this.#cut?.skip ?? 0) : 0)
    }
    return isExact || signal.aborted ? tokens : (await this.#slice(text)).tokens
  }

  /** One slice in one turn of the event loop, whoever asks: between two of them the model takes its steps. */
  #slice(text: string): Promise<{ readonly tokens: readonly Token[]; readonly ms: number }> {
    const slice = this.#last.then(async () => {
      await setImmediate()
      const startedAt = performance.now()
      const tokens = this.#tokenize(text)
      return { tokens, ms: performance.now() - startedAt }
    })
    this.#last = slice.catch(() => {})
    return slice
  }

  /** Where a slice may end, so that tokens come out as they do in one go. */
  #placeIn(text: string, start: number): number | undefined {
    for (let place = start + sliceLength; this.#cut && place > start + 1; place--) {
      if (this.#cut.at.includes(text[place] ?? '') && isWord(text[place - 1]) && isWord(text[place + 1]))
        return place
    }
    return undefined
  }
}

/** A slice ends behind a word. */
interface Cut {
  /** What follows there. */
  readonly at: string
  /** So many characters are left out. */
  readonly skip: number
  /** What is left of a second word. */
  readonly rest: string
}

/** A tokenizer either takes a space as it comes, or puts one before whatever it is given. */
const cuts: readonly Cut[] = [
  { at: ' \n', skip: 0, rest: ' word' },
  { at: ' ', skip: 1, rest: 'word' },
]

const isWord = (character = ''): boolean => /[\p{L}\p{N}]/u.test(character)

/** Not between the two halves of one. */
const wholeCharacters = (text: string, end: number): number =>
  /[\uD800-\uDBFF]/.test(text[end - 1] ?? '') ? end - 1 : end

const tooMuchTime = (): LlmError =>
  new LlmError('invalid_request', 'The text takes too much time to be read.', { param: 'messages' })
