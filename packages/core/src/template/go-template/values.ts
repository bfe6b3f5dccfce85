/** What a template works with: Go's values, as far as templates tell them apart. */

/** `undefined` is no value at all, `null` Go's nil, a `bigint` an integer, a `number` a float64, an array a slice. */
export type GoValue =
  | undefined
  | null
  | boolean
  | bigint
  | number
  | string
  | readonly GoValue[]
  | GoMap
  | GoStruct

/** Keys are its own: nothing is looked up in a prototype. */
export class GoMap {
  /** In order of their keys, as Go goes through them. */
  readonly entries: ReadonlyMap<string, GoValue>
  /** How it is printed. */
  readonly isJson: boolean

  constructor(entries: Iterable<readonly [string, GoValue]>, { isJson = false } = {}) {
    this.entries = new Map([...entries].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
    this.isJson = isJson
  }
}

export interface GoField {
  readonly value: GoValue
  /** In JSON; absent: it is not there. */
  readonly key?: string
  /** Not in JSON where it is empty. */
  readonly omitEmpty?: boolean
}

/** A field that it does not have is an error. */
export class GoStruct {
  readonly fields: ReadonlyMap<string, GoField>
  readonly isJson: boolean

  constructor(fields: Readonly<Record<string, GoField>>, { isJson = false } = {}) {
    this.fields = new Map(Object.entries(fields))
    this.isJson = isJson
  }
}

export const isList = (value: GoValue): value is readonly GoValue[] => Array.isArray(value)

export function isTrue(value: GoValue): boolean {
  if (isList(value)) return value.length > 0
  if (value instanceof GoMap) return value.entries.size > 0
  return Boolean(value)
}

/** As Go names it in errors. */
export function typeOf(value: GoValue): string {
  if (value === undefined || value === null) return 'nil'
  if (isList(value)) return '[]interface {}'
  if (value instanceof GoMap) return 'map[string]interface {}'
  if (value instanceof GoStruct) return 'struct'
  return { boolean: 'bool', bigint: 'int', number: 'float64', string: 'string' }[
    typeof value as 'boolean' | 'bigint' | 'number' | 'string'
  ]
}

/** Deeper values are none that somebody writes. */
export const maxDepth = 200

/** What JSON says, as Go reads it: every number is a float. Too deep is nil. */
export function fromJson(value: unknown, options: { isJson?: boolean } = {}, depth = 0): GoValue {
  if (depth > maxDepth) return null
  if (Array.isArray(value)) return value.map((item) => fromJson(item, {}, depth + 1))
  if (typeof value === 'object' && value !== null)
    return new GoMap(
      Object.entries(value).map(([key, item]) => [key, fromJson(item, {}, depth + 1)] as const),
      options,
    )
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value
  return null
}
