/** Arguments that come one by one, between tags: they become members of one JSON object. */
import type { Tool } from '../../engine/request.ts'
import type { Steps } from '../input.ts'
import { escaped } from './json.ts'
import type { Scene } from './parser-context.ts'

export interface Tags {
  /** In front of a parameter's name. */
  readonly open: string
  /** Behind it; where there are two, the first says that the value is a string, the second that it is JSON. */
  readonly keyEnds: readonly [string] | readonly [string, string]
  /** In front of the value, where that is apart. */
  readonly value?: string
  /** What may stand before the value and is no part of it. */
  readonly padding?: string
  readonly valueEnds: readonly string[]
  /** Any of them ends the call. */
  readonly close: readonly string[]
}

/** A whole call but for its name. */
export function* callWithParameters(name: string, scene: Scene, tags: Tags): Steps {
  const { input, voice, tools } = scene
  input.forget()
  voice.call(name)
  const schema = tools.find((tool) => tool.name === name)?.parameters ?? {}
  let count = 0
  const open = (key: string): void => voice.arguments(`${count++ === 0 ? '{' : ','}"${escaped(key)}":`)
  for (;;) {
    yield* input.blank()
    if (!(yield* input.closes(tags.open))) break
    if (!(yield* parameter(scene, tags, schema, open))) return voice.incomplete()
  }
  let isClosed = false
  for (const close of tags.close) {
    if (yield* input.closes(close)) isClosed = true
    yield* input.blank()
  }
  // There might have come more.
  if (!isClosed) return voice.incomplete()
  voice.arguments(count === 0 ? '{}' : '}')
}

function* parameter(
  { input, voice }: Scene,
  tags: Tags,
  schema: Tool['parameters'],
  open: (key: string) => void,
): Steps<boolean> {
  let key = ''
  const keyEnd = yield* input.upTo(tags.keyEnds, (text) => {
    key += text
  })
  if (keyEnd === undefined) return false
  input.skip(keyEnd.length)
  if (tags.value !== undefined) {
    yield* input.blank()
    if (!(yield* input.takes(tags.value))) return false
  }
  if (tags.padding !== undefined) yield* input.takes(tags.padding)
  const saysType = tags.keyEnds.length === 2
  const types = saysType ? undefined : typesOf(schema, key)
  const isString = saysType ? keyEnd === tags.keyEnds[0] : types?.join() === 'string'
  if (isString) {
    open(key)
    voice.arguments('"')
    const end = yield* input.upTo(tags.valueEnds, (text) => voice.arguments(escaped(text)))
    if (end === undefined) return false
    input.skip(end.length)
    voice.arguments('"')
    return true
  }
  const pieces: string[] = []
  const end = yield* input.upTo(tags.valueEnds, (text) => pieces.push(text))
  if (end === undefined) return false
  input.skip(end.length)
  open(key)
  voice.arguments(toJson(pieces.join(''), types))
  return true
}

/** Which types a parameter may have; undefined where its schema does not say. */
function typesOf(schema: object, key: string): readonly unknown[] | undefined {
  const { properties } = schema as { properties?: Readonly<Record<string, Typed | null>> }
  const { type, anyOf }: Typed = (properties && Object.hasOwn(properties, key) && properties[key]) || {}
  // Pydantic's way to say that a text may be null.
  const types = [type ?? (Array.isArray(anyOf) ? anyOf : []).map((one: Typed | null) => one?.type)].flat(2)
  return types.length === 0 || types.some((one) => one === undefined) ? undefined : types
}

interface Typed {
  readonly type?: unknown
  readonly anyOf?: unknown
}

/** As Python prints them, and so do templates that are made for it. */
const pythonWords: Readonly<Record<string, string>> = { True: 'true', False: 'false', None: 'null' }

/** Models write strings as they are and all else as JSON; where both is possible, the schema decides. */
function toJson(text: string, types: readonly unknown[] | undefined): string {
  const trimmed = text.trim()
  const json = Object.hasOwn(pythonWords, trimmed) ? (pythonWords[trimmed] as string) : trimmed
  try {
    const value: unknown = JSON.parse(json)
    if (!types || types.some((type) => isOf(type, value))) return json
  } catch {
    // Not JSON: a string.
  }
  return `"${escaped(text)}"`
}

function isOf(type: unknown, value: unknown): boolean {
  if (type === 'null') return value === null
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value)
  return typeof value === (type === 'integer' ? 'number' : type)
}
