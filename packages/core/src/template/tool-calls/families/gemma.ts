/**
 * Tool calls of Gemma 4 and FunctionGemma. Arguments are objects with unquoted keys. Strings are between
 * special quote tokens.
 */
import type { ParserInput, ParseSteps } from '../../input.ts'
import { escapeJson, isJsonScalar, maxArgumentDepth } from '../json.ts'
import { parseMarkedCalls, parseToolName } from '../parse-calls.ts'
import type { ToolCallParser } from '../parser-context.ts'

/** Closing tag and quote token of each opening tag. */
const marks: Readonly<Record<string, readonly [close: string, quote: string]>> = {
  '<|tool_call>': ['<tool_call|>', '<|"|>'],
  '<start_function_call>': ['<end_function_call>', '<escape>'],
}

export const gemma: ToolCallParser = (context) =>
  parseMarkedCalls(Object.keys(marks), context, function* (mark) {
    const { input, output } = context
    const [close, quote] = marks[mark] as readonly [string, string]
    if (!(yield* input.tryTake('call:'))) return false
    const name = yield* parseToolName(context)
    if (name === undefined || (yield* input.peek()) !== '{') return false
    input.dropCapture()
    output.startCall(name)
    const parser = new GemmaValueParser(input, quote, (json) => output.addArguments(json))
    if (yield* parser.parseValue(0)) yield* input.tryTakeClosing(close)
    else output.markIncomplete()
    return true
  })

/** Converts a value to JSON. Every parsing method returns false if its text is invalid or incomplete. */
class GemmaValueParser {
  readonly #input: ParserInput
  readonly #quote: string
  readonly #emit: (json: string) => void

  constructor(input: ParserInput, quote: string, emit: (json: string) => void) {
    this.#input = input
    this.#quote = quote
    this.#emit = emit
  }

  *parseValue(depth: number): ParseSteps<boolean> {
    const input = this.#input
    yield* input.skipBlanks()
    if (depth === maxArgumentDepth) return false
    if (yield* input.tryTake(this.#quote)) return yield* this.#string()
    if (yield* input.tryTake('{')) return yield* this.#items('{', '}', depth)
    if (yield* input.tryTake('[')) return yield* this.#items('[', ']', depth)
    return yield* this.#scalar()
  }

  *#items(open: string, close: string, depth: number): ParseSteps<boolean> {
    const input = this.#input
    this.#emit(open)
    yield* input.skipBlanks()
    if (yield* input.tryTake(close)) {
      this.#emit(close)
      return true
    }
    for (;;) {
      if (open === '{' && !(yield* this.#key())) return false
      if (!(yield* this.parseValue(depth + 1))) return false
      yield* input.skipBlanks()
      if (yield* input.tryTake(',')) this.#emit(',')
      else break
    }
    if (!(yield* input.tryTake(close))) return false
    this.#emit(close)
    return true
  }

  *#key(): ParseSteps<boolean> {
    const input = this.#input
    yield* input.skipBlanks()
    let key = ''
    const add = (text: string): void => {
      key += text
    }
    if (yield* input.tryTake(this.#quote)) {
      if ((yield* input.takeUpTo([this.#quote], add)) === undefined) return false
      input.skip(this.#quote.length)
      yield* input.skipBlanks()
    } else {
      if ((yield* input.takeUpTo([':'], add)) === undefined) return false
      key = key.trim()
    }
    if (!(yield* input.tryTake(':'))) return false
    this.#emit(`"${escapeJson(key)}":`)
    return true
  }

  *#string(): ParseSteps<boolean> {
    this.#emit('"')
    if ((yield* this.#input.takeUpTo([this.#quote], (text) => this.#emit(escapeJson(text)))) === undefined)
      return false
    this.#input.skip(this.#quote.length)
    this.#emit('"')
    return true
  }

  /** Parses a number or a word. A word that is not a JSON literal becomes a string. */
  *#scalar(): ParseSteps<boolean> {
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
    this.#emit(isJsonScalar(word) ? word : `"${escapeJson(word)}"`)
    return true
  }
}
