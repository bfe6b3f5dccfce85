/** Whole characters out of tokens: one token can be a part of a character. */
import type { Token } from 'node-llama-cpp'
import type { Binding } from './binding.ts'

/** No character needs more tokens than it has bytes. */
const maxHeld = 4
/** Enough for a tokenizer to know whether a space belongs in front. */
const contextTokens = 8

export class Detokenizer {
  readonly #model: Pick<Binding, 'detokenize'>
  #before: readonly Token[]
  #held: Token[] = []

  constructor(model: Pick<Binding, 'detokenize'>, prompt: readonly Token[]) {
    this.#model = model
    this.#before = prompt.slice(-contextTokens)
  }

  /** The text that this token completes; empty while a character is incomplete. */
  push(token: Token): string {
    this.#held.push(token)
    const text = this.#model.detokenize(this.#held, this.#before)
    if (text.endsWith('\uFFFD') && this.#held.length < maxHeld) return ''
    this.#before = [...this.#before, ...this.#held].slice(-contextTokens)
    this.#held = []
    return text
  }

  /** What is left at the end: an incomplete character stays unsaid. */
  flush(): string {
    return this.#model.detokenize(this.#held, this.#before).replace(/\uFFFD+$/, '')
  }
}
