/** Formats values like Go's `fmt`, or as HTML-safe JSON like Go's `encoding/json`. */
import { GoMap, GoStruct, type GoValue, isList, isTrue } from './values.ts'

/** Formats a value like the verb `%v`. */
export function toText(value: GoValue): string {
  if (value === undefined || value === null) return '<nil>'
  if (typeof value === 'number') return formatFloat(value)
  if (isList(value)) return isJsonList(value) ? toJson(value) : `[${value.map(toText).join(' ')}]`
  if (value instanceof GoMap)
    return value.isJson ? toJson(value) : `map[${[...value.entries].map(formatPair).join(' ')}]`
  if (value instanceof GoStruct)
    return value.isJson ? toJson(value) : `{${[...value.fields.values()].map(formatField).join(' ')}}`
  return String(value)
}

const isJsonList = (items: readonly GoValue[]): boolean =>
  items.length > 0 && items.every((item) => item instanceof GoStruct && item.isJson)

const formatPair = ([key, value]: readonly [string, GoValue]): string => `${key}:${toText(value)}`
const formatField = ({ value }: { readonly value: GoValue }): string => toText(value)

/**
 * Formats a float like Go's `strconv.AppendFloat` with format `g` and the shortest precision. Nonzero values
 * below 1e-4 and values from 1e6 up get an exponent of two or more digits.
 */
export function formatFloat(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'
  const size = Math.abs(value)
  const text = size !== 0 && (size < 1e-4 || size >= 1e6) ? value.toExponential() : String(value)
  return withExponent(Object.is(value, -0) ? '-0' : text)
}

export const withExponent = (text: string): string => text.replace(/e([+-])(\d)$/, 'e$10$2')

/** Converts a value to JSON. Map keys are sorted. Struct fields keep their order. */
export function toJson(value: GoValue): string {
  if (value === undefined || value === null) return 'null'
  if (typeof value === 'string') return quoteJson(value)
  if (typeof value === 'number') return Number.isFinite(value) ? JSON.stringify(value) : 'null'
  if (isList(value)) return `[${value.map(toJson).join(',')}]`
  if (value instanceof GoMap) return toJsonObject([...value.entries])
  if (value instanceof GoStruct)
    return toJsonObject(
      [...value.fields.values()].flatMap(({ key, omitEmpty, value: field }) =>
        key === undefined || (omitEmpty && !isTrue(field)) ? [] : [[key, field] as const],
      ),
    )
  return String(value)
}

const toJsonObject = (members: readonly (readonly [string, GoValue])[]): string =>
  `{${members.map(([key, value]) => `${quoteJson(key)}:${toJson(value)}`).join(',')}}`

const quoteJson = (text: string): string =>
  JSON.stringify(text).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
