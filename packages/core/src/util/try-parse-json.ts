/** Parses a text as JSON. Returns `undefined` for invalid JSON. Valid JSON never yields `undefined`. */
export function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
