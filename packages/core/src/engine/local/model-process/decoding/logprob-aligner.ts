/** Maps emitted text to the tokens it came from. Text is held back for a while, and markup is left out of it. */

interface AlignedToken<Token> {
  readonly token: Token
  /** Range of the text that the token completed. The tokens of one character share it. */
  readonly from: number
  readonly to: number
}

export class LogprobAligner<Token> {
  /** Text that is sampled and not emitted yet. */
  #text = ''
  /** Length of all text before it. */
  #before = 0
  #aligned: AlignedToken<Token>[] = []
  #incomplete: Token[] = []

  /** @param text text that the token completes; empty while a character is incomplete */
  push(token: Token, text: string): void {
    this.#incomplete.push(token)
    if (text === '') return
    const from = this.#before + this.#text.length
    this.#text += text
    for (const one of this.#incomplete) this.#aligned.push({ token: one, from, to: from + text.length })
    this.#incomplete = []
  }

  /** Returns the tokens of a text that is emitted now. Text before it is markup and never emitted. */
  take(text: string): Token[] {
    // After markup, the text is at the end.
    const at = this.#text.startsWith(text) ? 0 : Math.max(0, this.#text.lastIndexOf(text))
    const from = this.#before + at
    const to = from + text.length
    const taken = this.#aligned.filter((placed) => placed.from < to && placed.to > from)
    this.#aligned = this.#aligned.filter((placed) => placed.from >= to)
    this.#text = this.#text.slice(at + text.length)
    this.#before = to
    return taken.map(({ token }) => token)
  }

  /** Drops the text before the last token, which is no output text. */
  skip(): void {
    const from = this.#aligned.at(-1)?.from ?? this.#before
    this.#aligned = this.#aligned.filter((placed) => placed.from >= from)
    this.#text = this.#text.slice(from - this.#before)
    this.#before = from
  }
}
