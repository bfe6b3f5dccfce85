/** Parts of parsed model output, and the handling of white space around markup. */
/**
 * The concatenated `tool-arguments` of a complete tool call form a JSON object. `tool-incomplete` ends a tool
 * call that the token limit or the model cut off. The arguments of an incomplete tool call form a prefix of
 * an object, possibly empty.
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
  /**
   * Returns the remaining parts at the end of the text.
   *
   * @param isCut whether a limit has cut the text off. An incomplete reasoning tag at its end is then dropped
   */
  flush(isCut?: boolean): readonly OutputPart[]
}

/**
 * Collects parts and drops white space next to markup. Holds back white space until the next text arrives.
 */
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

  /** Drops the white space around this position, where the output has markup. */
  markBoundary(): void {
    this.#pendingBlank = ''
    this.#afterMark = true
  }

  startCall(name: string): void {
    this.markBoundary()
    this.#parts.push({ type: 'tool-call', index: this.#calls++, name })
  }

  /** Appends JSON to the arguments of the last tool call. */
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

  /** Returns the remaining parts. Keeps white space at the end of the text. */
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
