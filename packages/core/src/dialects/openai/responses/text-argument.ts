/** Reads the text in the arguments of a custom tool, `{"input":"…"}`, while they arrive. */
import { isRecord } from '../../../util/is-record.ts'
import { tryParseJson } from '../../../util/try-parse-json.ts'

/** Name of the argument with the text of a custom tool. */
export const textArgument = 'input'

const beginning = /^\s*\{\s*"input"\s*:\s*"/
/** A character or an escape of a JSON string that has arrived as a whole. Escapes of a surrogate pair come together. */
const pieces =
  /(?:[^"\\]|\\(?:["\\/bfnrt]|u(?![dD][89abAB])[0-9a-fA-F]{4}|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))+/y

export class TextArgument {
  #json = ''
  /** Position behind what has been read. Undefined until the text begins. */
  #at: number | undefined
  #text = ''

  /** Returns the next piece of the text, which can be empty. */
  push(json: string): string {
    this.#json += json
    this.#at ??= beginning.exec(this.#json)?.[0].length
    if (this.#at === undefined) return ''
    pieces.lastIndex = this.#at
    const [raw = ''] = pieces.exec(this.#json) ?? []
    this.#at += raw.length
    const piece = tryParseJson(`"${raw}"`) as string
    this.#text += piece
    return piece
  }

  /** Returns the rest of the text. Arguments of another form are the text themselves. */
  end(): string {
    const value = tryParseJson(this.#json)
    const argument = isRecord(value) ? value[textArgument] : undefined
    const whole = typeof argument === 'string' ? argument : this.#at === undefined ? this.#json : this.#text
    // What has been sent stays.
    const rest = whole.startsWith(this.#text) ? whole.slice(this.#text.length) : ''
    this.#text += rest
    return rest
  }

  get text(): string {
    return this.#text
  }
}
