/** A model's thoughts apart from its answer: what stands in `<think>…</think>` before all else. */

export interface Said {
  readonly type: 'reasoning' | 'text'
  readonly text: string
}

const opening = '<think>'
const closing = '</think>'

/** White space around the tags is nobody's. */
export class ReasoningSplitter {
  /** `between`: white space after a tag. */
  #state: 'start' | 'thinking' | 'text'
  #between: boolean
  #held = ''

  /** @param prompt some templates open the thoughts themselves */
  constructor(prompt: string) {
    this.#state = prompt.trimEnd().endsWith(opening) ? 'thinking' : 'start'
    this.#between = this.#state === 'thinking'
  }

  push(text: string): readonly Said[] {
    const seen = this.#held + text
    this.#held = ''
    if (this.#state === 'start') return this.#begin(seen)
    const trimmed = this.#between ? seen.trimStart() : seen
    this.#between &&= trimmed === ''
    return this.#state === 'thinking' ? this.#think(trimmed) : say('text', trimmed)
  }

  /** What was held back and turned out to be no tag. */
  flush(): readonly Said[] {
    const held = this.#held
    this.#held = ''
    return this.#state === 'thinking' ? say('reasoning', held.trimEnd()) : say('text', held)
  }

  #begin(seen: string): readonly Said[] {
    const trimmed = seen.trimStart()
    if (trimmed.startsWith(opening)) {
      this.#state = 'thinking'
      this.#between = true
      return this.push(trimmed.slice(opening.length))
    }
    if (opening.startsWith(trimmed)) {
      this.#held = seen
      return []
    }
    this.#state = 'text'
    return say('text', seen)
  }

  #think(seen: string): readonly Said[] {
    const end = seen.indexOf(closing)
    if (end === -1) {
      const safe = safeLength(seen)
      this.#held = seen.slice(safe)
      return say('reasoning', seen.slice(0, safe))
    }
    this.#state = 'text'
    this.#between = true
    return [...say('reasoning', seen.slice(0, end).trimEnd()), ...this.push(seen.slice(end + closing.length))]
  }
}

const say = (type: Said['type'], text: string): readonly Said[] => (text === '' ? [] : [{ type, text }])

/** Without the beginning of a closing tag at the end, and white space that may stand before one. */
function safeLength(text: string): number {
  let length = closing.length - 1
  while (!closing.startsWith(text.slice(text.length - length))) length--
  return text.slice(0, text.length - length).trimEnd().length
}
