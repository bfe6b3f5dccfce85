/** JSON as Go writes it: what Ollama would write has the same bytes here, and so the same digest. Shape: Go `encoding/json`. */

/** With the line's end that Go's encoder adds. Keys stay in their order: they are a struct's. */
export const goJson = (value: unknown): string =>
  `${JSON.stringify(value, wellFormed).replace(/[<>&\u2028\u2029]/g, escaped)}\n`

/** Keys in Go's order for maps, at every depth. */
export function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  return Object.fromEntries(entries.map(([key, part]) => [key, sorted(part)]))
}

/** Half a character is U+FFFD in Go. */
const wellFormed = (_: string, value: unknown): unknown =>
  typeof value === 'string' ? value.toWellFormed() : value

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
