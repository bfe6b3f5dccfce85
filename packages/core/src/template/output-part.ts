/** What an answer is made of when it is taken apart, and the white space around its markup. */

/**
 * The deltas of a whole call, joined, are a JSON object. A `tool-incomplete` ends a call that the token limit or
 * the model broke off: its deltas are the beginning of one, and may be none.
 */
export type Said =
  | { readonly type: 'reasoning' | 'text'; readonly text: string }
  | { readonly type: 'tool-call'; readonly index: number; readonly name: string }
  | { readonly type: 'tool-arguments'; readonly index: number; readonly json: string }
  | { readonly type: 'tool-incomplete'; readonly index: number }

/** White space beside markup is nobody's: it is kept back until it is known what follows. */
export class Voice {
  /** Off where no markup can follow. */
  trims = true
  #said: Said[] = []
  #calls = 0
  #type: 'reasoning' | 'text' = 'text'
  #blank = ''
  #afterMark = false

  say(type: 'reasoning' | 'text', text: string): void {
    const body = this.#afterMark ? text.trimStart() : text
    if (body === '') return
    this.#afterMark = false
    this.#type = type
    const length = this.trims ? body.trimEnd().length : body.length
    if (length === 0) {
      this.#blank += body
      return
    }
    this.#add(type, this.#blank + body.slice(0, length))
    this.#blank = body.slice(length)
  }

  /** Markup stood here. */
  mark(): void {
    this.#blank = ''
    this.#afterMark = true
  }

  call(name: string): void {
    this.mark()
    this.#said.push({ type: 'tool-call', index: this.#calls++, name })
  }

  /** Of the last call. */
  arguments(json: string): void {
    const index = this.#calls - 1
    const last = this.#said.at(-1)
    if (last?.type === 'tool-arguments') this.#said.splice(-1, 1, { ...last, json: last.json + json })
    else this.#said.push({ type: 'tool-arguments', index, json })
  }

  incomplete(): void {
    this.#said.push({ type: 'tool-incomplete', index: this.#calls - 1 })
  }

  take(): readonly Said[] {
    const said = this.#said
    this.#said = []
    return said
  }

  /** At the end, with the white space that no markup followed. */
  takeAll(): readonly Said[] {
    if (this.#type === 'text' && this.#blank !== '') this.#add('text', this.#blank)
    this.#blank = ''
    return this.take()
  }

  #add(type: 'reasoning' | 'text', text: string): void {
    const last = this.#said.at(-1)
    if (last?.type === type) this.#said.splice(-1, 1, { type, text: last.text + text })
    else this.#said.push({ type, text })
  }
}
