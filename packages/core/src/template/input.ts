/** Text that comes in pieces, read as if it were whole: a parser is a generator that waits where it has to see more. */
import { OutputBuilder, type OutputParser } from './output-part.ts'

/** Yields to wait for more text. */
export type ParseSteps<Result = void> = Generator<undefined, Result, undefined>

/** Linear in the text, however it is cut: each character is taken once, and at most a mark's length is looked ahead. */
export class ParserInput {
  #text = ''
  #at = 0
  #ended = false
  /** Pieces taken since `keep`, but for what `#text` still has from `#keptFrom`. */
  #captured: string[] | undefined
  #captureStart = 0

  feed(text: string): void {
    this.#captured?.push(this.#text.slice(this.#captureStart, this.#at))
    this.#captureStart = 0
    this.#text = this.#text.slice(this.#at) + text
    this.#at = 0
  }

  end(): void {
    this.#ended = true
  }

  /** A character that is not taken yet; empty at the end. */
  *peek(ahead = 0): ParseSteps<string> {
    while (this.#at + ahead >= this.#text.length) {
      if (this.#ended) return ''
      yield
    }
    return this.#text[this.#at + ahead] as string
  }

  /** Takes what was peeked at. */
  skip(length = 1): void {
    this.#at += length
  }

  /** Takes `literal` if it stands here. */
  *tryTake(literal: string): ParseSteps<boolean> {
    for (let n = 0; n < literal.length; n++) if ((yield* this.peek(n)) !== literal[n]) return false
    this.#at += literal.length
    return true
  }

  /** Takes what ends something; at the end of all, also where it is cut off. Only a whole one counts. */
  *tryTakeClosing(literal: string): ParseSteps<boolean> {
    if (yield* this.tryTake(literal)) return true
    if (this.#ended && literal.startsWith(this.#text.slice(this.#at))) this.#at = this.#text.length
    return false
  }

  *skipBlanks(): ParseSteps {
    yield* this.takeRun(' \t\r\n')
  }

  /** Takes as many of these characters as there are. */
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
   * Gives text as it comes, up to the first of these marks, and tells which; it is not taken. Without one, up to the end.
   * No mark may be the beginning of another, or be inside of it unless they end together.
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
      if (found === undefined && !this.#ended) end -= measurePartialMark(marks, this.#text, this.#at)
      if (end > this.#at) emit(this.#text.slice(this.#at, end))
      this.#at = end
      if (found !== undefined || this.#ended) return found
      yield
    }
  }

  /** From here on, what is taken is also kept, until it is known whether it is text. */
  startCapture(): void {
    this.#captured = []
    this.#captureStart = this.#at
  }

  /** It is. */
  takeCaptured(): string {
    const captured = this.#captured
      ? [...this.#captured, this.#text.slice(this.#captureStart, this.#at)].join('')
      : ''
    this.#captured = undefined
    return captured
  }

  /** It is not. */
  dropCapture(): void {
    this.#captured = undefined
  }
}

/** How much of the end may be the beginning of a mark. */
function measurePartialMark(marks: readonly string[], text: string, from: number): number {
  const longest = marks.reduce((max, mark) => Math.max(max, mark.length), 0)
  let length = Math.min(longest - 1, text.length - from)
  while (length > 0 && !marks.some((mark) => mark.startsWith(text.slice(-length)))) length--
  return Math.max(length, 0)
}

/** @param parse reads all of the input */
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
    flush: () => {
      input.end()
      steps.next()
      return output.finish()
    },
  }
}
