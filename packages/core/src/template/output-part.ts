/** Parts of parsed model output, and the handling of white space around markup. */
/**
 * The argument deltas of a complete call form a JSON object. `tool-incomplete` ends a call that the token limit or the
 * model cut off; its deltas form a prefix of an object, possibly empty.
 */
export type OutputPart =
  | { readonly type: 'reasoning' | 'text'; readonly text: string }
  | { readonly type: 'tool-call'; readonly index: number; readonly name: string }
  | { readonly type: 'tool-arguments'; readonly index: number; readonly json: string }
  | { readonly type: 'tool-incomplete'; readonly index: number }

/** Parses text incrementally. */
export interface OutputParser {
  /** Returns the parts that no later text can change. */
  push(text: string): readonly OutputPart[]
  /** Returns the remaining parts at the end of the text. */
  flush(): readonly OutputPart[]
}

/** Collects parts. Drops white space next to markup, so it is held back until the next text is known. */
export class OutputBuilder {
  /** Set to false once no markup can follow. */
  isTrimming = true
  #parts: OutputPart[] = []
  #calls = 0
  #type: 'reasoning' | 'text' = 'text'
  #pendingBlank = ''
  #afterMark = false

  addText(type: 'reasoning' | 'text', text: string): void {
    const body = this.#afterMark ? text.trimStart() : text
    if (body === '') return
    this.#afterMark = false
    this.#type = type
    const length = this.isTrimming ? body.trimEnd().length : body.length
    if (length === 0) {
      this.#pendingBlank += body
      return
    }
    this.#append(type, this.#pendingBlank + body.slice(0, length))
    this.#pendingBlank = body.slice(length)
  }

  /** Marks the position of markup. */
  markBoundary(): void {
    this.#pendingBlank = ''
    this.#afterMark = true
  }

  startCall(name: string): void {
    this.markBoundary()
    this.#parts.push({ type: 'tool-call', index: this.#calls++, name })
  }

  /** Adds arguments of the last call. */
  addArguments(json: string): void {
    const index = this.#calls - 1
    const last = this.#parts.at(-1)
    if (last?.type === 'tool-arguments') this.#parts.splice(-1, 1, { ...last, json: last.json + json })
    else this.#parts.push({ type: 'tool-arguments', index, json })
  }

  markIncomplete(): void {
    this.#parts.push({ type: 'tool-incomplete', index: this.#calls - 1 })
  }

  take(): readonly OutputPart[] {
    const parts = this.#parts
    this.#parts = []
    return parts
  }

  /** Returns the remaining parts, with trailing white space. */
  finish(): readonly OutputPart[] {
    if (this.#type === 'text' && this.#pendingBlank !== '') this.#append('text', this.#pendingBlank)
    this.#pendingBlank = ''
    return this.take()
  }

  #append(type: 'reasoning' | 'text', text: string): void {
    const last = this.#parts.at(-1)
    if (last?.type === type) this.#parts.splice(-1, 1, { type, text: last.text + text })
    else this.#parts.push({ type, text })
  }
}
