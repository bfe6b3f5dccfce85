/** Checks what the host app passes to the methods of `Llm`. */
import { formatFieldPath, invalidRequest, type LlmError } from '../errors.ts'
import { closestName } from '../util/closest-name.ts'
import { isRecord } from '../util/is-record.ts'

/** All field names of a type, so that a new field cannot be forgotten. */
export type FieldNames<T> = { readonly [Name in keyof Required<T>]: true }

export const omitFields = (names: object, omitted: readonly string[]): object =>
  omitted.length === 0
    ? names
    : Object.fromEntries(Object.entries(names).filter(([name]) => !omitted.includes(name)))

export interface FieldCheck {
  /** Path of the object, such as `messages[0]`. */
  readonly at?: string
  /** What the fields belong to: `option of llm.chat()`. */
  readonly kind: string
  /** What to write instead of names from other APIs. */
  readonly hints?: Readonly<Record<string, string>>
}

/** Throws an `LlmError` `invalid_request` that names the first unknown field, and what to write instead. */
export function checkFields(value: object, names: object, { at = '', kind, hints = {} }: FieldCheck): void {
  for (const name of Object.keys(value)) {
    if (Object.hasOwn(names, name)) continue
    const field = formatFieldPath([name])
    const param = at === '' ? field : `${at}.${field}`
    const hint = Object.hasOwn(hints, name) ? hints[name] : closestName(name, Object.keys(names))
    throw invalidRequest(`${param}: unknown ${kind}.${hint ? ` Did you mean ${hint}?` : ''}`, {
      param,
      issue: 'unsupported',
    })
  }
}

export function expectRecord(value: unknown, param: string, what = 'an object'): Record<string, unknown> {
  if (!isRecord(value)) throw expected(param, what, value)
  return value
}

/** Throws unless the value is undefined or has the type. */
export function checkType(value: unknown, param: string, type: keyof typeof typeNames): void {
  if (value !== undefined && typeof value !== type) throw expected(param, typeNames[type], value)
}

const typeNames = {
  string: 'a string',
  boolean: 'true or false',
  function: 'a function',
} as const

/** Signals of another realm, such as that of a test, have another class. */
export const isSignal = (value: unknown): value is AbortSignal =>
  isRecord(value) && typeof value.aborted === 'boolean' && typeof value.addEventListener === 'function'

export function checkSignal(signal: unknown): void {
  if (signal !== undefined && !isSignal(signal)) throw expected('signal', 'an AbortSignal', signal)
}

export const expected = (param: string, what: string, got: unknown): LlmError =>
  invalidRequest(`${param}: expected ${what}, got ${describe(got)}.`, {
    param,
    issue: got === undefined ? 'missing' : 'type',
  })

/** Describes a value without showing what it contains. Short texts and numbers are shown. */
function describe(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'string') return value.length > 40 ? 'a long string' : `'${value.toWellFormed()}'`
  if (typeof value === 'function') return 'a function'
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}
