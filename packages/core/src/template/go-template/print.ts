/** Values as text: as `fmt` prints them, and as JSON that is safe in HTML. */
import { GoMap, GoStruct, isList, isTrue, type Value } from './values.ts'

/** As `%v` does it. */
export function toText(value: Value): string {
  if (value === undefined || value === null) return '<nil>'
  if (typeof value === 'number') return floatText(value)
  if (isList(value)) return isJsonList(value) ? toJson(value) : `[${value.map(toText).join(' ')}]`
  if (value instanceof GoMap)
    return value.isJson ? toJson(value) : `map[${[...value.entries].map(pairText).join(' ')}]`
  if (value instanceof GoStruct)
    return value.isJson ? toJson(value) : `{${[...value.fields.values()].map(fieldText).join(' ')}}`
  return String(value)
}

const isJsonList = (items: readonly Value[]): boolean =>
  items.length > 0 && items.every((item) => item instanceof GoStruct && item.isJson)

const pairText = ([key, value]: readonly [string, Value]): string => `${key}:${toText(value)}`
const fieldText = ({ value }: { readonly value: Value }): string => toText(value)

/** With an exponent of two digits, and from 1e-5 down already. */
export function floatText(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'
  const size = Math.abs(value)
  const text = size !== 0 && (size < 1e-4 || size >= 1e21) ? value.toExponential() : String(value)
  return withExponent(Object.is(value, -0) ? '-0' : text)
}

export const withExponent = (text: string): string => text.replace(/e([+-])(\d)$/, 'e$10$2')

/** Keys of maps in order, those of structs as they are declared. */
export function toJson(value: Value): string {
  if (value === undefined || value === null) return 'null'
  if (typeof value === 'string') return quoted(value)
  if (typeof value === 'number') return Number.isFinite(value) ? JSON.stringify(value) : 'null'
  if (isList(value)) return `[${value.map(toJson).join(',')}]`
  if (value instanceof GoMap) return object([...value.entries])
  if (value instanceof GoStruct)
    return object(
      [...value.fields.values()].flatMap(({ key, omitEmpty, value: field }) =>
        key === undefined || (omitEmpty && !isTrue(field)) ? [] : [[key, field] as const],
      ),
    )
  return String(value)
}

const object = (members: readonly (readonly [string, Value])[]): string =>
  `{${members.map(([key, value]) => `${quoted(key)}:${toJson(value)}`).join(',')}}`

const quoted = (text: string): string =>
  JSON.stringify(text).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
