/** JSON as Go writes it: what Ollama would write has the same bytes here, and so the same digest. Shape: Go `encoding/json`. */
import { invalidRequest } from '../../errors.ts'
import { maxDepth } from './depth.ts'

/** With the line's end that Go's encoder adds. Keys stay in their order: they are a struct's. */
export const stringifyGoJson = (value: unknown): string =>
  `${JSON.stringify(value, replaceLoneSurrogates).replace(/[<>&\u2028\u2029]/g, escapeUnicode)}\n`

/** Keys in Go's order for maps, at every depth. Throws `invalid_request` for what is nested too deep. */
export function sortKeys(value: unknown, levels = maxDepth): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (levels === 0) throw invalidRequest(`a parameter is nested deeper than ${maxDepth} levels`)
  if (Array.isArray(value)) return value.map((part) => sortKeys(part, levels - 1))
  const entries = Object.entries(value).sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  return Object.fromEntries(entries.map(([key, part]) => [key, sortKeys(part, levels - 1)]))
}

/** Half a character is U+FFFD in Go. */
const replaceLoneSurrogates = (_: string, value: unknown): unknown =>
  typeof value === 'string' ? value.toWellFormed() : value

const escapeUnicode = (character: string): string =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
