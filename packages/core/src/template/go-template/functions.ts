/** Template functions of Go and Ollama. `and` and `or` are in `run.ts`, because they short-circuit. */
import { GoTemplateError } from './error.ts'
import { toJson } from './print.ts'
import { sprint, sprintf, sprintln } from './printf.ts'
import { GoMap, GoStruct, type GoValue, isList, isTrue, maxDepth, typeOf } from './values.ts'

export interface FunctionContext {
  readonly now: Date
}

interface BuiltinFunction {
  readonly minArgs: number
  /** @default unlimited */
  readonly maxArgs?: number
  readonly call: (values: readonly GoValue[], context: FunctionContext) => GoValue
}

export const functions: ReadonlyMap<string, BuiltinFunction> = new Map(
  Object.entries({
    not: { minArgs: 1, maxArgs: 1, call: ([value]) => !isTrue(value) },
    eq: { minArgs: 2, call: ([value, ...others]) => others.some((other) => isEqual(value, other)) },
    ne: { minArgs: 2, maxArgs: 2, call: ([a, b]) => !isEqual(a, b) },
    lt: { minArgs: 2, maxArgs: 2, call: ([a, b]) => isLess(a, b) },
    le: { minArgs: 2, maxArgs: 2, call: ([a, b]) => isLess(a, b) || isEqual(a, b) },
    gt: { minArgs: 2, maxArgs: 2, call: ([a, b]) => !(isLess(a, b) || isEqual(a, b)) },
    ge: { minArgs: 2, maxArgs: 2, call: ([a, b]) => !isLess(a, b) },
    len: { minArgs: 1, maxArgs: 1, call: ([value]) => BigInt(measureLength(value)) },
    index: { minArgs: 1, call: ([value, ...keys]) => keys.reduce(indexValue, value) },
    slice: { minArgs: 1, maxArgs: 4, call: ([value, ...ends]) => sliceValue(value, ends) },
    print: { minArgs: 0, call: sprint },
    println: { minArgs: 0, call: sprintln },
    printf: { minArgs: 1, call: ([format, ...values]) => sprintf(requireString(format), values) },
    html: { minArgs: 0, call: (values) => escapeHtml(sprint(values)) },
    js: { minArgs: 0, call: (values) => escapeJs(sprint(values)) },
    urlquery: { minArgs: 0, call: (values) => escapeQuery(sprint(values)) },
    call: {
      minArgs: 1,
      call: ([value]) => {
        throw new GoTemplateError(`non-function ${typeOf(value)} of type ${typeOf(value)}`)
      },
    },
    json: { minArgs: 1, maxArgs: 1, call: ([value]) => toJson(value) },
    currentDate: { minArgs: 0, call: (_, { now }) => formatDate(now) },
    yesterdayDate: { minArgs: 0, call: (_, { now }) => formatDate(new Date(now.getTime() - dayMs)) },
    toTypeScriptType: { minArgs: 1, maxArgs: 1, call: ([value]) => toTypeScript(value) },
  } satisfies Record<string, BuiltinFunction>),
)

export const functionNames: ReadonlySet<string> = new Set([...functions.keys(), 'and', 'or'])

const requireString = (value: GoValue): string => {
  if (typeof value === 'string') return value
  throw new GoTemplateError(`wrong type for value; expected string; got ${typeOf(value)}`)
}

type BasicKind = 'bool' | 'int' | 'float64' | 'string' | 'nil' | 'other'
const toBasicKind = (value: GoValue): BasicKind => {
  const type = typeOf(value)
  return ['bool', 'int', 'float64', 'string', 'nil'].includes(type) ? (type as BasicKind) : 'other'
}

/** Compares two values. A missing value and nil equal each other and nothing else. */
function isEqual(a: GoValue, b: GoValue): boolean {
  const [kind, other] = [toBasicKind(a), toBasicKind(b)]
  if (kind === 'nil' || other === 'nil') return kind === other
  if (kind !== other) throw new GoTemplateError('incompatible types for comparison')
  if (kind === 'other')
    throw new GoTemplateError(`non-comparable types ${typeOf(a)}: ${typeOf(a)}, ${typeOf(b)}: ${typeOf(b)}`)
  return a === b
}

function isLess(a: GoValue, b: GoValue): boolean {
  const [kind, other] = [toBasicKind(a), toBasicKind(b)]
  if (kind === 'nil' || kind === 'other' || other === 'nil' || other === 'other' || kind === 'bool')
    throw new GoTemplateError('invalid type for comparison')
  if (kind !== other) throw new GoTemplateError('incompatible types for comparison')
  return kind === 'string'
    ? Buffer.compare(Buffer.from(requireString(a)), Buffer.from(requireString(b))) < 0
    : (a as number) < (b as number)
}

/** Length of a string in bytes, or of a list or map in elements. */
function measureLength(value: GoValue): number {
  if (typeof value === 'string') return Buffer.byteLength(value)
  if (isList(value)) return value.length
  if (value instanceof GoMap) return value.entries.size
  throw new GoTemplateError(value == null ? 'len of nil pointer' : `len of type ${typeOf(value)}`)
}

function indexValue(value: GoValue, key: GoValue): GoValue {
  if (value === undefined || value === null) throw new GoTemplateError('index of untyped nil')
  if (value instanceof GoMap) return value.entries.get(requireString(key)) ?? null
  if (isList(value)) return value[toPosition(key, value.length - 1)]
  if (typeof value !== 'string') throw new GoTemplateError(`can't index item of type ${typeOf(value)}`)
  const bytes = Buffer.from(value)
  return BigInt(bytes[toPosition(key, bytes.length - 1)] as number)
}

/** @param max largest valid position */
function toPosition(key: GoValue, max: number): number {
  if (typeof key !== 'bigint')
    throw new GoTemplateError(
      key === undefined || key === null
        ? 'cannot index slice/array with nil'
        : `cannot index slice/array with type ${typeOf(key)}`,
    )
  if (key < 0n || key > BigInt(max)) throw new GoTemplateError(`index out of range: ${key}`)
  return Number(key)
}

/** Slices strings by byte. A partial character becomes U+FFFD. */
function sliceValue(value: GoValue, ends: readonly GoValue[]): GoValue {
  if (value === undefined || value === null) throw new GoTemplateError('slice of untyped nil')
  const isText = typeof value === 'string'
  if (!isText && !isList(value)) throw new GoTemplateError(`can't slice item of type ${typeOf(value)}`)
  if (isText && ends.length > 2) throw new GoTemplateError('cannot 3-index slice a string')
  const items = isText ? Buffer.from(value) : value
  const [from = 0, to = items.length] = ends.map((end) => toPosition(end, items.length))
  if (from > to) throw new GoTemplateError(`invalid slice index: ${from} > ${to}`)
  return isText ? (items as Buffer).toString('utf8', from, to) : (items as readonly GoValue[]).slice(from, to)
}

const htmlNames: Readonly<Record<string, string>> = {
  ...{ '&': '&amp;', '<': '&lt;', '>': '&gt;' },
  ...{ '"': '&#34;', "'": '&#39;', '\0': '\uFFFD' },
}
const escapeHtml = (value: string): string =>
  value.replace(/[&<>"'\0]/g, (character) => htmlNames[character] as string)

const escapeJs = (value: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all of them are escaped.
  value.replace(/[\\'"<>&=\0-\x1f]/g, (character) =>
    `\\'"`.includes(character)
      ? `\\${character}`
      : `\\u${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`,
  )

const escapeQuery = (value: string): string =>
  encodeURIComponent(value.toWellFormed())
    .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+')

const dayMs = 86_400_000
/** Formats a date as YYYY-MM-DD, in the local time zone. */
const formatDate = (date: Date): string =>
  [date.getFullYear(), date.getMonth() + 1, date.getDate()]
    .map((part) => String(part).padStart(2, '0'))
    .join('-')

const typeScriptTypes: Readonly<Record<string, string>> = {
  string: 'string',
  number: 'number',
  integer: 'number',
  boolean: 'boolean',
  array: 'any[]',
  object: 'Record<string, any>',
  null: 'null',
}

/** @param property one parameter of a tool */
function toTypeScript(property: GoValue, depth = 0): string {
  if (!(property instanceof GoStruct) || depth > maxDepth) return 'any'
  const choices = property.fields.get('AnyOf')?.value
  if (isList(choices) && choices.length > 0)
    return choices.map((choice) => toTypeScript(choice, depth + 1)).join(' | ')
  const type = property.fields.get('Type')?.value
  const names = isList(type) ? type : typeof type === 'string' ? [type] : []
  if (names.length === 0) return 'any'
  return names
    .map((name) =>
      typeof name === 'string' && Object.hasOwn(typeScriptTypes, name) ? typeScriptTypes[name] : 'any',
    )
    .join(' | ')
}
