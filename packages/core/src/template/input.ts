/** Text that comes in pieces, read as if it were whole: a parser is a generator that waits where it has to see more. */
import { type Said, Voice } from './output-part.ts'

/** Yields to wait for more text. */
export type Steps<Result = void> = Generator<undefined, Result, undefined>

/** Linear in the text, however it is cut: each character is taken once, and at most a mark's length is looked ahead. */
export class Input {
  #text = ''
  #at = 0
  #ended = false
  /** Pieces taken since `keep`, but for what `#text` still has from `#keptFrom`. */
  #kept: string[] | undefined
  #keptFrom = 0

  feed(text: string): void {
    this.#kept?.push(this.#text.slice(this.#keptFrom, this.#at))
    this.#keptFrom = 0
    this.#text = this.#text.slice(this.#at) + text
    this.#at = 0
  }

  end(): void {
    this.#ended = true
  }

  /** A character that is not taken yet; empty at the end. */
  *peek(ahead = 0): Steps<string> {
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
  *takes(literal: string): Steps<boolean> {
    for (let n = 0; n < literal.length; n++) if ((yield* this.peek(n)) !== literal[n]) return false
    this.#at += literal.length
    return true
  }

  /** Takes what ends something; at the end of all, also where it is cut off. Only a whole one counts. */
  *closes(literal: string): Steps<boolean> {
    if (yield* this.takes(literal)) return true
    if (this.#ended && literal.startsWith(this.#text.slice(this.#at))) this.#at = this.#text.length
    return false
  }

  *blank(): Steps {
    yield* this.run(' \t\r\n')
  }

  /** Takes as many of these characters as there are. */
  *run(characters: string): Steps<string> {
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
  *upTo(marks: readonly string[], give: (text: string) => void): Steps<string | undefined> {
    for (;;) {
      let end = this.#text.length
      let found: string | undefined
      for (const mark of marks) {
        const at = this.#text.indexOf(mark, this.#at)
        if (at === -1 || at >= end) continue
        end = at
        found = mark
      }
      if (found === undefined && !this.#ended) end -= begun(marks, this.#text, this.#at)
      if (end > this.#at) give(this.#text.slice(this.#at, end))
      this.#at = end
      if (found !== undefined || this.#ended) return found
      yield
    }
  }

  /** From here on, what is taken is also kept, until it is known whether it is text. */
  keep(): void {
    this.#kept = []
    this.#keptFrom = this.#at
  }

  /** It is. */
  kept(): string {
    const kept = this.#kept ? [...this.#kept, this.#text.slice(this.#keptFrom, this.#at)].join('') : ''
    this.#kept = undefined
    return kept
  }

  /** It is not. */
  forget(): void {
    this.#kept = undefined
  }
}

/** How much of the end may be the beginning of a mark. */
function begun(marks: readonly string[], text: string, from: number): number {
  const longest = marks.reduce((most, mark) => Math.max(most, mark.length), 0)
  let length = Math.min(longest - 1, text.length - from)
  while (length > 0 && !marks.some((mark) => mark.startsWith(text.slice(-length)))) length--
  return Math.max(length, 0)
}

/** What all parsers here are to others. */
export interface Parser {
  /** What is sure by now. */
  push(text: string): readonly Said[]
  /** The rest, at the end. */
  flush(): readonly Said[]
}

/** @param parse reads all of the input */
export function incremental(parse: (input: Input, voice: Voice) => Steps): Parser {
  const input = new Input()
  const voice = new Voice()
  const steps = parse(input, voice)
  return {
    push: (text) => {
      input.feed(text)
      steps.next()
      return voice.take()
    },
    flush: () => {
      input.end()
      steps.next()
      return voice.takeAll()
    },
  }
}
