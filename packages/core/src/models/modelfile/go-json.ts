/** Writes the same bytes as Go's `encoding/json`, so that digests are the same as in Ollama. */
import { invalidRequest } from '../../errors.ts'
import { maxDepth } from './depth.ts'

/** Ends with a newline, like Go's encoder. Keys keep their order, like the fields of a Go struct. */
export const stringifyGoJson = (value: unknown): string =>
  `${JSON.stringify(value, replaceLoneSurrogates).replace(/[<>&\u2028\u2029]/g, escapeUnicode)}\n`

/** Sorts keys at every depth, as Go does for maps. Throws `invalid_request` beyond `maxDepth` levels. */
export function sortKeys(value: unknown, levels = maxDepth): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (levels === 0) throw invalidRequest(`a parameter is nested deeper than ${maxDepth} levels`)
  if (Array.isArray(value)) return value.map((part) => sortKeys(part, levels - 1))
  const entries = Object.entries(value).sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  return Object.fromEntries(entries.map(([key, part]) => [key, sortKeys(part, levels - 1)]))
}

/** Go writes U+FFFD for a lone surrogate. */
const replaceLoneSurrogates = (_: string, value: unknown): unknown =>
  typeof value === 'string' ? value.toWellFormed() : value

const escapeUnicode = (character: string): string =>
  `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
