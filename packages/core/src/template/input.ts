/** Incremental parsing: a parser is a generator that yields whenever it needs more text. */
import { OutputBuilder, type OutputParser } from './output-part.ts'

/** A running parser. Each `yield` waits for more text. */
export type ParseSteps<Result = void> = Generator<undefined, Result, undefined>

/**
 * Model output received so far. A mark is a markup string such as `<tool_call>`. Parsers look ahead at most
 * the length of a mark, so parsing takes linear time for chunks of any size.
 */
export class ParserInput {
  #text = ''
  #at = 0
  #ended = false
  #isCut = false
  /** Earlier chunks of the captured text. The rest of this text starts at `#captureStart` in `#text`. */
  #captured: string[] | undefined
  #captureStart = 0

  feed(text: string): void {
    this.#captured?.push(this.#text.slice(this.#captureStart, this.#at))
    this.#captureStart = 0
    this.#text = this.#text.slice(this.#at) + text
    this.#at = 0
  }

  /** @param isCut whether an incomplete mark at the end is dropped */
  end(isCut: boolean): void {
    this.#ended = true
    this.#isCut = isCut
  }

  /** Returns the character at offset `ahead` without taking it. Returns an empty string at the end. */
  *peek(ahead = 0): ParseSteps<string> {
    while (this.#at + ahead >= this.#text.length) {
      if (this.#ended) return ''
      yield
    }
    return this.#text[this.#at + ahead] as string
  }

  /** Takes characters that `peek` returned before. */
  skip(length = 1): void {
    this.#at += length
  }

  /** Takes `literal` if the text continues with it. */
  *tryTake(literal: string): ParseSteps<boolean> {
    for (let n = 0; n < literal.length; n++) if ((yield* this.peek(n)) !== literal[n]) return false
    this.#at += literal.length
    return true
  }

  /**
   * Takes closing markup. At the end of the text, also takes an incomplete prefix of the markup.
   * Returns whether the markup was complete.
   */
  *tryTakeClosing(literal: string): ParseSteps<boolean> {
    if (yield* this.tryTake(literal)) return true
    if (this.#ended && literal.startsWith(this.#text.slice(this.#at))) this.#at = this.#text.length
    return false
  }

  /** Takes the rest of a text that was cut off, if it is the start of a mark. */
  *tryTakeCut(marks: readonly string[]): ParseSteps<boolean> {
    if ((yield* this.peek()) === '' || !this.#isCut) return false
    const rest = this.#text.slice(this.#at)
    if (!marks.some((mark) => mark.startsWith(rest))) return false
    this.#at = this.#text.length
    return true
  }

  /** Whether the parser is at the end of a text that was cut off. */
  *isCutOff(): ParseSteps<boolean> {
    return (yield* this.peek()) === '' && this.#isCut
  }

  *skipBlanks(): ParseSteps {
    yield* this.takeRun(' \t\r\n')
  }

  /** Takes and returns the longest run of the given characters. */
  *takeRun(characters: string): ParseSteps<string> {
    let taken = ''
    for (;;) {
      const character = yield* this.peek()
      if (character === '' || !characters.includes(character)) return taken
      taken += character
      this.#at++
    }
  }

  /**
   * Emits text as it arrives, up to the first mark or the end. Returns the mark without taking it, or
   * `undefined` at the end. No mark may be a prefix of another mark. A mark inside another mark must end
   * where that mark ends. Drops an incomplete mark at the end of a text that was cut off.
   */
  *takeUpTo(marks: readonly string[], emit: (text: string) => void): ParseSteps<string | undefined> {
    for (;;) {
      let end = this.#text.length
      let found: string | undefined
      for (const mark of marks) {
        const at = this.#text.indexOf(mark, this.#at)
        if (at === -1 || at >= end) continue
        end = at
        found = mark
      }
      if (found === undefined && (!this.#ended || this.#isCut))
        end -= measurePartialMark(marks, this.#text, this.#at)
      if (end > this.#at) emit(this.#text.slice(this.#at, end))
      this.#at = found === undefined && this.#ended ? this.#text.length : end
      if (found !== undefined || this.#ended) return found
      yield
    }
  }

  /** Records the text that the parser consumes, until `takeCaptured` or `dropCapture` is called. */
  startCapture(): void {
    this.#captured = []
    this.#captureStart = this.#at
  }

  /** Ends the capture and returns the recorded text, because it was not markup. */
  takeCaptured(): string {
    const captured = this.#captured
      ? [...this.#captured, this.#text.slice(this.#captureStart, this.#at)].join('')
      : ''
    this.#captured = undefined
    return captured
  }

  /** Ends the capture and drops the recorded text, because it was markup. */
  dropCapture(): void {
    this.#captured = undefined
  }
}

/** Length of the longest suffix of the text that is a prefix of a mark. */
function measurePartialMark(marks: readonly string[], text: string, from: number): number {
  const longest = marks.reduce((max, mark) => Math.max(max, mark.length), 0)
  let length = Math.min(longest - 1, text.length - from)
  while (length > 0 && !marks.some((mark) => mark.startsWith(text.slice(-length)))) length--
  return Math.max(length, 0)
}

/** @param parse must consume the whole input */
export function createIncrementalParser(
  parse: (input: ParserInput, output: OutputBuilder) => ParseSteps,
): OutputParser {
  const input = new ParserInput()
  const output = new OutputBuilder()
  const steps = parse(input, output)
  return {
    push: (text) => {
      input.feed(text)
      steps.next()
      return output.take()
    },
    flush: (isCut = false) => {
      input.end(isCut)
      steps.next()
      return output.finish()
    },
  }
}
