/** Turns tokens into text with whole characters. A token can end in the middle of a character. */
import type { Token } from 'node-llama-cpp'
import type { RuntimeModel } from '../model.ts'

/** Bytes of the longest UTF-8 character. No character needs more tokens than it has bytes. */
const maxBytes = 4
/** Number of preceding tokens that the tokenizer gets. It needs them to decide on a leading space. */
const contextTokens = 8

export class Detokenizer {
  readonly #model: Pick<RuntimeModel, 'detokenize'>
  readonly #withControl: boolean
  #before: readonly Token[]
  #pendingTokens: Token[] = []
  /** Length of the part of the pending text that was already returned. */
  #emittedLength = 0
  /** Number of tokens since text was last returned. */
  #silentTokens = 0

  /** @param withControl whether control tokens are written as text, for output parsers */
  constructor(model: Pick<RuntimeModel, 'detokenize'>, prompt: readonly Token[], withControl = false) {
    this.#model = model
    this.#withControl = withControl
    this.#before = prompt.slice(-contextTokens)
  }

  /** Returns the text that this token completes. Empty while a character is incomplete. */
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

  /** Returns the rest of the text. An incomplete character is dropped, or shown as U+FFFD. */
  flush(incomplete: 'dropped' | 'shown' = 'dropped'): string {
    const text = this.#model.detokenize(this.#pendingTokens, this.#before, this.#withControl)
    return (incomplete === 'shown' ? text : text.replace(/\uFFFD+$/, '')).slice(this.#emittedLength)
  }
}
