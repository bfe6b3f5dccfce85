/** Whole characters out of tokens: one token can be a part of a character, and end one and begin the next. */
import type { Token } from 'node-llama-cpp'
import type { Binding } from '../model.ts'

/** No character needs more tokens than it has bytes. */
const maxBytes = 4
/** Enough for a tokenizer to know whether a space belongs in front. */
const contextTokens = 8

export class Detokenizer {
  readonly #model: Pick<Binding, 'detokenize'>
  readonly #withControl: boolean
  #before: readonly Token[]
  #held: Token[] = []
  /** How much of the held tokens' text is said. */
  #said = 0
  /** How many tokens have passed since something was. */
  #silent = 0

  /** @param withControl also the tokens that are no text, for who can read them */
  constructor(model: Pick<Binding, 'detokenize'>, prompt: readonly Token[], withControl = false) {
    this.#model = model
    this.#withControl = withControl
    this.#before = prompt.slice(-contextTokens)
  }

  /** The text that this token completes; empty while a character is incomplete. */
  push(token: Token): string {
    this.#held.push(token)
    const text = this.#model.detokenize(this.#held, this.#before, this.#withControl)
    const whole = text.replace(/\uFFFD+$/, '')
    const piece = whole.slice(this.#said)
    this.#silent = piece === '' ? this.#silent + 1 : 0
    if (whole !== text && this.#silent < maxBytes) {
      this.#said = Math.max(this.#said, whole.length)
      return piece
    }
    const rest = text.slice(this.#said)
    this.#before = [...this.#before, ...this.#held].slice(-contextTokens)
    this.#held = []
    this.#said = 0
    this.#silent = 0
    return rest
  }

  /** What is left at the end: an incomplete character stays unsaid, or is U+FFFD. */
  flush(incomplete: 'unsaid' | 'shown' = 'unsaid'): string {
    const text = this.#model.detokenize(this.#held, this.#before, this.#withControl)
    return (incomplete === 'shown' ? text : text.replace(/\uFFFD+$/, '')).slice(this.#said)
  }
}
