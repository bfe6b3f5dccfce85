/** Whole characters out of tokens: one token can be a part of a character, and end one and begin the next. */
import type { Token } from 'node-llama-cpp'
import type { RuntimeModel } from '../model.ts'

/** No character needs more tokens than it has bytes. */
const maxBytes = 4
/** Enough for a tokenizer to know whether a space belongs in front. */
const contextTokens = 8

export class Detokenizer {
  readonly #model: Pick<RuntimeModel, 'detokenize'>
  readonly #withControl: boolean
  #before: readonly Token[]
  #pendingTokens: Token[] = []
  /** How much of the held tokens' text is said. */
  #emittedLength = 0
  /** How many tokens have passed since something was. */
  #silentTokens = 0

  /** @param withControl also the tokens that are no text, for who can read them */
  constructor(model: Pick<RuntimeModel, 'detokenize'>, prompt: readonly Token[], withControl = false) {
    this.#model = model
    this.#withControl = withControl
    this.#before = prompt.slice(-contextTokens)
  }

  /** The text that this token completes; empty while a character is incomplete. */
  push(token: Token): string {
    this.#pendingTokens.push(token)
    const text = this.#model.detokenize(this.#pendingTokens, this.#before, this.#withControl)
    const complete = text.replace(/\uFFFD+$/, '')
    const piece = complete.slice(this.#emittedLength)
    this.#silentTokens = piece === '' ? this.#silentTokens + 1 : 0
    if (complete !== text && this.#silentTokens < maxBytes) {
      this.#emittedLength = Math.max(this.#emittedLength, complete.length)
      return piece
    }
    const rest = text.slice(this.#emittedLength)
    this.#before = [...this.#before, ...this.#pendingTokens].slice(-contextTokens)
    this.#pendingTokens = []
    this.#emittedLength = 0
    this.#silentTokens = 0
    return rest
  }

  /** Text of the last tokens. An incomplete character is dropped, or shown as U+FFFD. */
  flush(incomplete: 'dropped' | 'shown' = 'dropped'): string {
    const text = this.#model.detokenize(this.#pendingTokens, this.#before, this.#withControl)
    return (incomplete === 'shown' ? text : text.replace(/\uFFFD+$/, '')).slice(this.#emittedLength)
  }
}
