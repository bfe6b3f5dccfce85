/** Go values that templates can use. */
/**
 * `undefined` stands for a missing value, `null` for nil, `bigint` for int, `number` for float64, and an
 * array for a slice.
 */
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

/** A map without a prototype, so that keys such as `constructor` are safe. */
export class GoMap {
  /** Sorted by key, because Go templates iterate over maps in this order. */
  readonly entries: ReadonlyMap<string, GoValue>
  /** Whether the map prints as JSON. */
  readonly isJson: boolean

  constructor(entries: Iterable<readonly [string, GoValue]>, { isJson = false } = {}) {
    this.entries = new Map([...entries].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
    this.isJson = isJson
  }
}

export interface GoField {
  readonly value: GoValue
  /** JSON key. If absent, the JSON omits the field. */
  readonly key?: string
  /** Whether the JSON omits the field if it is empty. */
  readonly omitEmpty?: boolean
}

/** A struct. Access to an unknown field is an error. */
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

/** Returns the type name that Go's error messages use. */
export function typeOf(value: GoValue): string {
  if (value === undefined || value === null) return 'nil'
  if (isList(value)) return '[]interface {}'
  if (value instanceof GoMap) return 'map[string]interface {}'
  if (value instanceof GoStruct) return 'struct'
  return { boolean: 'bool', bigint: 'int', number: 'float64', string: 'string' }[
    typeof value as 'boolean' | 'bigint' | 'number' | 'string'
  ]
}

/** Maximum nesting depth of values from requests. */
export const maxDepth = 200

/** Converts JSON like Go: every number is a float64. Values nested more deeply than `maxDepth` become nil. */
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
