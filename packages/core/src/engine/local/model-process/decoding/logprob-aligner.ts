/**
 * Maps emitted text to its tokens. Text can be emitted later than its tokens are sampled, and markup is never
 * emitted.
 */

interface AlignedToken<Token> {
  readonly token: Token
  /**
   * Range of this token's text in the sampled text, from `from` to `to`. If several tokens form
   * one character, each of them has the range of this character.
   */
  readonly from: number
  readonly to: number
}

export class LogprobAligner<Token> {
  /** Sampled text that is not emitted yet. */
  #text = ''
  /** Length of all text before `#text`. */
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

  /** Returns the tokens of a text that is being emitted. Drops the text before it, which is markup. */
  take(text: string): Token[] {
    // After markup, the emitted text is at the end of `#text`.
    const at = this.#text.startsWith(text) ? 0 : Math.max(0, this.#text.lastIndexOf(text))
    const from = this.#before + at
    const to = from + text.length
    const taken = this.#aligned.filter((placed) => placed.from < to && placed.to > from)
    this.#aligned = this.#aligned.filter((placed) => placed.from >= to)
    this.#text = this.#text.slice(at + text.length)
    this.#before = to
    return taken.map(({ token }) => token)
  }

  /** Drops the text before the last token, since this text belongs to a tool call. */
  skip(): void {
    const from = this.#aligned.at(-1)?.from ?? this.#before
    this.#aligned = this.#aligned.filter((placed) => placed.from >= from)
    this.#text = this.#text.slice(from - this.#before)
    this.#before = from
  }
}
