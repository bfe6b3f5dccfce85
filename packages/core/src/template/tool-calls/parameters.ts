/** Parses arguments that are written as one tag per parameter, and converts them to one JSON object. */
import type { Tool } from '../../engine/request.ts'
import { isRecord } from '../../util/is-record.ts'
import type { ParserInput, ParseSteps } from '../input.ts'
import type { OutputBuilder } from '../output-part.ts'
import { escapeJson } from './json.ts'
import type { ParserContext } from './parser-context.ts'

export interface ParameterMarkup {
  /** Markup before a parameter's name. */
  readonly open: string
  /**
   * Markup after the name. If there are several, the first precedes a string. If there are two, the second precedes
   * JSON.
   */
  readonly keyEnds: readonly string[]
  /** Markup before the value, if it is separate from the markup after the name. */
  readonly value?: string
  /** Text that may precede the value and is not part of the value. */
  readonly padding?: string
  /** Markup that may be around the value of a string. */
  readonly quote?: readonly [open: string, close: string]
  readonly valueEnds: readonly string[]
  /** Closing markup, from inner to outer. Any one of these strings ends the call. */
  readonly close: readonly string[]
}

/** Parses the rest of a call after its name. */
export function* parseParameterCall(
  name: string,
  context: ParserContext,
  markup: ParameterMarkup,
): ParseSteps {
  const { input, output, tools } = context
  input.dropCapture()
  output.startCall(name)
  const schema = tools.find((tool) => tool.name === name)?.parameters ?? {}
  let count = 0
  const openMember = (key: string): void =>
    output.addArguments(`${count++ === 0 ? '{' : ','}"${escapeJson(key)}":`)
  for (;;) {
    yield* input.skipBlanks()
    if (!(yield* input.tryTakeClosing(markup.open))) break
    if (!(yield* parseParameter(context, markup, schema, openMember))) return output.markIncomplete()
  }
  let isClosed = false
  for (const close of markup.close) {
    if (yield* input.tryTakeClosing(close)) isClosed = true
    yield* input.skipBlanks()
  }
  // Without closing markup, more parameters could follow.
  if (!isClosed) return output.markIncomplete()
  output.addArguments(count === 0 ? '{}' : '}')
}

function* parseParameter(
  { input, output }: ParserContext,
  markup: ParameterMarkup,
  schema: Tool['parameters'],
  open: (key: string) => void,
): ParseSteps<boolean> {
  let key = ''
  const keyEnd = yield* input.takeUpTo(markup.keyEnds, (text) => {
    key += text
  })
  if (keyEnd === undefined) return false
  input.skip(keyEnd.length)
  if (markup.value !== undefined) {
    yield* input.skipBlanks()
    if (!(yield* input.tryTake(markup.value))) return false
  }
  if (markup.padding !== undefined) yield* input.tryTake(markup.padding)
  if (markup.quote && (yield* input.tryTake(markup.quote[0]))) {
    open(key)
    const [, close] = markup.quote
    return (yield* parseString(input, output, [close])) && (yield* takeValueEnd(input, markup.valueEnds))
  }
  const { length } = markup.keyEnds
  const types = length === 2 ? undefined : findTypes(schema, key)
  const isString = (length > 1 && keyEnd === markup.keyEnds[0]) || types?.join() === 'string'
  if (isString) {
    open(key)
    return yield* parseString(input, output, markup.valueEnds)
  }
  const pieces: string[] = []
  const end = yield* input.takeUpTo(markup.valueEnds, (text) => pieces.push(text))
  if (end === undefined) return false
  input.skip(end.length)
  open(key)
  output.addArguments(toJson(pieces.join(''), types))
  return true
}

/** Parses text up to one of the ends, as a JSON string. */
function* parseString(
  input: ParserInput,
  output: OutputBuilder,
  ends: readonly string[],
): ParseSteps<boolean> {
  output.addArguments('"')
  const end = yield* input.takeUpTo(ends, (text) => output.addArguments(escapeJson(text)))
  if (end === undefined) return false
  input.skip(end.length)
  output.addArguments('"')
  return true
}

/** Takes the markup after a quoted value. */
function* takeValueEnd(input: ParserInput, ends: readonly string[]): ParseSteps<boolean> {
  yield* input.skipBlanks()
  for (const end of ends) if (yield* input.tryTakeClosing(end)) return true
  return false
}

/** Returns the JSON types of a parameter, or `undefined` if the schema does not specify them. */
export function findTypes(schema: object, key: string): readonly unknown[] | undefined {
  const { properties } = schema as { properties?: Readonly<Record<string, TypedSchema | null>> }
  const { type, anyOf }: TypedSchema = (properties && Object.hasOwn(properties, key) && properties[key]) || {}
  // Pydantic declares optional types with `anyOf`.
  const types = [
    type ?? (Array.isArray(anyOf) ? anyOf : []).map((option: TypedSchema | null) => option?.type),
  ].flat(2)
  return types.length === 0 || types.some((one) => one === undefined) ? undefined : types
}

interface TypedSchema {
  readonly type?: unknown
  readonly anyOf?: unknown
}

/** The JSON literal of each Python literal. Templates that were written for Python print Python literals. */
export const pythonWords: Readonly<Record<string, string>> = { True: 'true', False: 'false', None: 'null' }

/**
 * Converts the text of a parameter to JSON. Models write strings without quotes and other values as JSON. The
 * schema decides ambiguous cases.
 */
export function toJson(text: string, types: readonly unknown[] | undefined): string {
  const trimmed = text.trim()
  const json = Object.hasOwn(pythonWords, trimmed) ? (pythonWords[trimmed] as string) : trimmed
  try {
    const value: unknown = JSON.parse(json)
    if (!types || types.some((type) => matchesType(type, value))) return json
  } catch {
    // The text is not JSON, so it is a string.
  }
  return `"${escapeJson(text)}"`
}

function matchesType(type: unknown, value: unknown): boolean {
  if (type === 'null') return value === null
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return isRecord(value)
  return typeof value === (type === 'integer' ? 'number' : type)
}
