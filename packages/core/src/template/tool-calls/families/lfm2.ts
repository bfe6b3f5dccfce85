/** Tool calls of LFM2: a list of Python calls, such as `[get_weather(city='Oslo', days=2)]`. */
import type { ParserInput, ParseSteps } from '../../input.ts'
import { escapeJson, isJsonScalar, jsonEscapes, maxArgumentDepth } from '../json.ts'
import { pythonWords } from '../parameters.ts'
import { parseMarkedCalls, parseToolName } from '../parse-calls.ts'
import type { ParserContext, ToolCallParser } from '../parser-context.ts'

export const lfm2: ToolCallParser = (context) =>
  parseMarkedCalls(['<|tool_call_start|>'], context, function* () {
    const { input, output } = context
    let hasCall = false
    for (;;) {
      yield* input.takeRun(hasCall ? ' \t\r\n,' : ' \t\r\n[')
      const next = yield* input.peek()
      if (hasCall && (next === ']' || next === '<' || next === '')) break
      if (hasCall) input.startCapture()
      if (!(yield* parseCall(context))) {
        if (hasCall) output.addText('text', input.takeCaptured())
        return hasCall
      }
      hasCall = true
    }
    yield* input.takeRun('] \t\r\n')
    yield* input.tryTakeClosing('<|tool_call_end|>')
    return true
  })

function* parseCall(context: ParserContext): ParseSteps<boolean> {
  const { input, output } = context
  const name = yield* parseToolName(context)
  if (name === undefined || !(yield* input.tryTake('('))) return false
  input.dropCapture()
  output.startCall(name)
  const parser = new PythonParser(input, (json) => output.addArguments(json))
  if (!(yield* parser.parseItems('{', ')', 0))) output.markIncomplete()
  return true
}

const closing: Readonly<Record<string, string>> = { '{': '}', '[': ']', '(': ')' }

/** Converts Python literals to JSON. Every parsing method returns false if its text is invalid or incomplete. */
class PythonParser {
  readonly #input: ParserInput
  readonly #emit: (json: string) => void

  constructor(input: ParserInput, emit: (json: string) => void) {
    this.#input = input
    this.#emit = emit
  }

  /**
   * Parses items after their opening bracket.
   * @param bracket `{` for members, `[` for elements
   * @param close the closing bracket. With `)`, members are arguments of a call
   */
  *parseItems(bracket: '{' | '[', close: string, depth: number): ParseSteps<boolean> {
    const input = this.#input
    let isFirst = true
    this.#emit(bracket)
    for (;;) {
      yield* input.skipBlanks()
      if (yield* input.tryTake(close)) break
      if (!isFirst) this.#emit(',')
      isFirst = false
      if (bracket === '{' && !(yield* this.#parseKey(close === ')' ? '=' : ':'))) return false
      if (!(yield* this.#parseValue(depth))) return false
      yield* input.skipBlanks()
      if (!(yield* input.tryTake(',')) && (yield* input.peek()) !== close) return false
    }
    this.#emit(bracket === '{' ? '}' : ']')
    return true
  }

  *#parseKey(separator: string): ParseSteps<boolean> {
    const input = this.#input
    const first = yield* input.peek()
    if (first === '"' || first === "'") {
      if (!(yield* this.#parseString())) return false
    } else {
      let key = ''
      for (let next = first; !` ${separator},()`.includes(next); next = yield* input.peek()) {
        key += next
        input.skip()
      }
      if (key === '') return false
      this.#emit(`"${escapeJson(key)}"`)
    }
    yield* input.skipBlanks()
    this.#emit(':')
    return yield* input.tryTake(separator)
  }

  *#parseValue(depth: number): ParseSteps<boolean> {
    const input = this.#input
    yield* input.skipBlanks()
    if (depth === maxArgumentDepth) return false
    const first = yield* input.peek()
    if (first === '"' || first === "'") return yield* this.#parseString()
    const close = closing[first]
    if (close === undefined) return yield* this.#parseWord()
    input.skip()
    return yield* this.parseItems(first === '{' ? '{' : '[', close, depth + 1)
  }

  *#parseString(): ParseSteps<boolean> {
    const input = this.#input
    const quote = yield* input.peek()
    input.skip()
    this.#emit('"')
    for (;;) {
      const character = yield* input.peek()
      if (character === '') return false
      if (character === '\\') {
        if (!(yield* this.#parseEscape())) return false
        continue
      }
      input.skip()
      if (character === quote) break
      this.#emit(escapeJson(character))
    }
    this.#emit('"')
    return true
  }

  *#parseEscape(): ParseSteps<boolean> {
    const input = this.#input
    const code = yield* input.peek(1)
    if (code === '') return false
    const digits = code === 'u' ? 4 : code === 'x' ? 2 : 0
    let hex = ''
    while (hex.length < digits) {
      const digit = yield* input.peek(2 + hex.length)
      if (!/^[0-9a-fA-F]$/.test(digit)) return false
      hex += digit
    }
    input.skip(2 + digits)
    const text = hex === '' ? (escapes[code] ?? `\\${code}`) : String.fromCharCode(Number.parseInt(hex, 16))
    this.#emit(escapeJson(text))
    return true
  }

  /** Parses a number or a constant. Any other word becomes a string. */
  *#parseWord(): ParseSteps<boolean> {
    const input = this.#input
    let text = ''
    for (;;) {
      const character = yield* input.peek()
      if (character === '' || character === '<') return false
      if (',)]}:'.includes(character)) break
      text += character
      input.skip()
    }
    const word = text.trim()
    if (word === '') return false
    const json = Object.hasOwn(pythonWords, word) ? (pythonWords[word] as string) : word
    this.#emit(isJsonScalar(json) ? json : `"${escapeJson(word)}"`)
    return true
  }
}

/** Escapes of Python. Before any other character, a backslash stays. */
const escapes: Readonly<Record<string, string>> = { ...jsonEscapes, '\n': '', "'": "'" }
