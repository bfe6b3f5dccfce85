/** Parses a text as JSON. Returns `undefined`, which JSON cannot express, for invalid JSON. */
export function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
