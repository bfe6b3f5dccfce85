/** Which tokens a piece of an answer took. Text is held back for a while, and markup is left out of it. */

interface AlignedToken<Token> {
  readonly token: Token
  /** Of the text that it completed; the parts of a character share it. */
  readonly from: number
  readonly to: number
}

export class LogprobAligner<Token> {
  /** Drawn, and not said yet. */
  #text = ''
  /** How much of all the text was before it. */
  #before = 0
  #aligned: AlignedToken<Token>[] = []
  #incomplete: Token[] = []

  /** @param text what it completes; empty while a character is incomplete */
  push(token: Token, text: string): void {
    this.#incomplete.push(token)
    if (text === '') return
    const from = this.#before + this.#text.length
    this.#text += text
    for (const one of this.#incomplete) this.#aligned.push({ token: one, from, to: from + text.length })
    this.#incomplete = []
  }

  /** The tokens of this text, which was said now; what was drawn before it is never said. */
  take(text: string): Token[] {
    // Behind markup it stands at the end.
    const at = this.#text.startsWith(text) ? 0 : Math.max(0, this.#text.lastIndexOf(text))
    const from = this.#before + at
    const to = from + text.length
    const taken = this.#aligned.filter((placed) => placed.from < to && placed.to > from)
    this.#aligned = this.#aligned.filter((placed) => placed.from >= to)
    this.#text = this.#text.slice(at + text.length)
    this.#before = to
    return taken.map(({ token }) => token)
  }

  /** What came before the last token is no text. */
  skip(): void {
    const from = this.#aligned.at(-1)?.from ?? this.#before
    this.#aligned = this.#aligned.filter((placed) => placed.from >= from)
    this.#text = this.#text.slice(from - this.#before)
    this.#before = from
  }
}
