/** Gemma 4 and FunctionGemma: objects with bare keys, and strings between quotes that are tokens. */
import type { Input, Steps } from '../input.ts'
import { escaped } from './json.ts'
import { behind, type Family, nameAmong } from './parser-context.ts'

/** Opening → closing, and what strings stand between. */
const marks: Readonly<Record<string, readonly [close: string, quote: string]>> = {
  '<|tool_call>': ['<tool_call|>', '<|"|>'],
  '<start_function_call>': ['<end_function_call>', '<escape>'],
}

/** Clients refuse what is deeper. */
const maxDepth = 128

export const gemma: Family = (scene) =>
  behind(Object.keys(marks), scene, function* (mark) {
    const { input, voice } = scene
    const [close, quote] = marks[mark] as readonly [string, string]
    if (!(yield* input.takes('call:'))) return false
    const name = yield* nameAmong(scene)
    if (name === undefined || (yield* input.peek()) !== '{') return false
    input.forget()
    voice.call(name)
    const reader = new Reader(input, quote, (json) => voice.arguments(json))
    if (yield* reader.value(0)) yield* input.closes(close)
    else voice.incomplete()
    return true
  })

/** Copies a value, as JSON; false where it is none, or ends too early. */
class Reader {
  readonly #input: Input
  readonly #quote: string
  readonly #give: (json: string) => void

  constructor(input: Input, quote: string, give: (json: string) => void) {
    this.#input = input
    this.#quote = quote
    this.#give = give
  }

  *value(depth: number): Steps<boolean> {
    const input = this.#input
    yield* input.blank()
    if (depth === maxDepth) return false
    if (yield* input.takes(this.#quote)) return yield* this.#string()
    if (yield* input.takes('{')) return yield* this.#items('{', '}', depth)
    if (yield* input.takes('[')) return yield* this.#items('[', ']', depth)
    return yield* this.#scalar()
  }

  *#items(open: string, close: string, depth: number): Steps<boolean> {
    const input = this.#input
    this.#give(open)
    yield* input.blank()
    if (yield* input.takes(close)) {
      this.#give(close)
      return true
    }
    for (;;) {
      if (open === '{' && !(yield* this.#key())) return false
      if (!(yield* this.value(depth + 1))) return false
      yield* input.blank()
      if (yield* input.takes(',')) this.#give(',')
      else break
    }
    if (!(yield* input.takes(close))) return false
    this.#give(close)
    return true
  }

  *#key(): Steps<boolean> {
    const input = this.#input
    yield* input.blank()
    let key = ''
    const add = (text: string): void => {
      key += text
    }
    if (yield* input.takes(this.#quote)) {
      if ((yield* input.upTo([this.#quote], add)) === undefined) return false
      input.skip(this.#quote.length)
      yield* input.blank()
    } else {
      if ((yield* input.upTo([':'], add)) === undefined) return false
      key = key.trim()
    }
    if (!(yield* input.takes(':'))) return false
    this.#give(`"${escaped(key)}":`)
    return true
  }

  *#string(): Steps<boolean> {
    this.#give('"')
    if ((yield* this.#input.upTo([this.#quote], (text) => this.#give(escaped(text)))) === undefined)
      return false
    this.#input.skip(this.#quote.length)
    this.#give('"')
    return true
  }

  /** A number or a word; a word that JSON does not know is a string without its quotes. */
  *#scalar(): Steps<boolean> {
    const input = this.#input
    let text = ''
    for (;;) {
      const character = yield* input.peek()
      if (character === '' || character === '<') return false
      if (',}]'.includes(character)) break
      text += character
      input.skip()
    }
    const word = text.trim()
    if (word === '') return false
    this.#give(isScalar(word) ? word : `"${escaped(word)}"`)
    return true
  }
}

const isScalar = (word: string): boolean =>
  /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)$/.test(word)
