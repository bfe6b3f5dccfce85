/** Converts what a tool returns to the text that the model reads. */
import { formatFieldPath, invalidRequest } from '../../errors.ts'

/**
 * Returns a text as it is, and any other value as JSON. Throws an `LlmError` `invalid_request` for a value that JSON
 * cannot represent, or would drop.
 *
 * @param param names the function that has returned the value
 */
export function toResultText(output: unknown, param: string): string {
  if (typeof output === 'string') return output
  const reject = (got: string, path: readonly PropertyKey[] = []): Error =>
    invalidRequest(
      `${param}: expected the result to be a string, or a value that JSON can represent, got ${got}${path.length > 0 ? ` in ${formatFieldPath(path)}` : ''}.`,
      { param, issue: 'type' },
    )
  const paths = new Map<unknown, readonly PropertyKey[]>()
  let unrepresentable: Error | undefined
  try {
    const text = JSON.stringify(output, function (this: unknown, key, value: unknown) {
      const parent = paths.get(this)
      const path = parent ? [...parent, Array.isArray(this) ? Number(key) : key] : []
      const got = describeUnrepresentable(value)
      if (got !== undefined) {
        unrepresentable = reject(got, path)
        throw unrepresentable
      }
      if (typeof value === 'object') paths.set(value, path)
      return value
    })
    return text
  } catch {
    // JSON.stringify() throws for circles, and `toJSON()` may throw anything.
    throw unrepresentable ?? reject(typeof output)
  }
}

function describeUnrepresentable(value: unknown): string | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : String(value)
  if (typeof value !== 'object')
    return typeof value === 'string' || typeof value === 'boolean' ? undefined : typeof value
  if (value === null || Array.isArray(value) || Object.keys(value).length > 0) return undefined
  // JSON represents Map, Set, Promise, Error and similar objects as {}.
  const kind = Object.prototype.toString.call(value).slice('[object '.length, -1)
  return ['Object', 'String', 'Number', 'Boolean'].includes(kind) ? undefined : kind
}
