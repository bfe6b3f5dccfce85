/** Which tokens a piece of an answer took. Text is held back for a while, and markup is left out of it. */

interface Placed<Token> {
  readonly token: Token
  /** Of the text that it completed; the parts of a character share it. */
  readonly from: number
  readonly to: number
}

export class SaidTokens<Token> {
  /** Drawn, and not said yet. */
  #text = ''
  /** How much of all the text was before it. */
  #before = 0
  #placed: Placed<Token>[] = []
  #incomplete: Token[] = []

  /** @param text what it completes; empty while a character is incomplete */
  push(token: Token, text: string): void {
    this.#incomplete.push(token)
    if (text === '') return
    const from = this.#before + this.#text.length
    this.#text += text
    for (const one of this.#incomplete) this.#placed.push({ token: one, from, to: from + text.length })
    this.#incomplete = []
  }

  /** The tokens of this text, which was said now; what was drawn before it is never said. */
  take(said: string): Token[] {
    // Behind markup it stands at the end.
    const at = this.#text.startsWith(said) ? 0 : Math.max(0, this.#text.lastIndexOf(said))
    const from = this.#before + at
    const to = from + said.length
    const taken = this.#placed.filter((placed) => placed.from < to && placed.to > from)
    this.#placed = this.#placed.filter((placed) => placed.from >= to)
    this.#text = this.#text.slice(at + said.length)
    this.#before = to
    return taken.map(({ token }) => token)
  }

  /** What came before the last token is no text. */
  skip(): void {
    const from = this.#placed.at(-1)?.from ?? this.#before
    this.#placed = this.#placed.filter((placed) => placed.from >= from)
    this.#text = this.#text.slice(from - this.#before)
    this.#before = from
  }
}
