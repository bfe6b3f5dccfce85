/** Checks the size of a JSON Schema document and resolves `$ref`. Never fetches a remote reference. */
import { invalidRequest, LlmError } from '../../errors.ts'
import { drain } from '../../util/drain.ts'
import { isRecord } from '../../util/is-record.ts'
import { childNode, invalidKeyword, readKeyword, type SchemaNode } from './keywords.ts'

export const schemaLimits = {
  /** Maximum total length of all names and strings, in characters. */
  length: 512 * 1024,
  /** Maximum number of objects, arrays and scalars. */
  values: 50_000,
  depth: 100,
} as const

/**
 * Returns the root node. Throws an `LlmError` `invalid_request` if the value is not a schema or is too large.
 */
export function openSchema(schema: unknown): SchemaNode {
  if (typeof schema === 'boolean') return { schema, at: '#' }
  if (!isRecord(schema)) throw invalidRequest('The schema must be an object or a boolean.', { issue: 'type' })
  checkSize(schema)
  return { schema: normalizeJson(schema), at: '#' }
}

/** Drops `undefined` and other values that JSON cannot represent, because a host app can pass any object. */
function normalizeJson(schema: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(JSON.stringify(schema))
  } catch (cause) {
    throw new LlmError(
      'invalid_request',
      'The schema cannot be serialised as JSON.',
      { issue: 'type' },
      { cause },
    )
  }
}

function checkSize(schema: unknown): void {
  const pending: (readonly [value: unknown, depth: number])[] = [[schema, 0]]
  let [values, length] = [0, 0]
  for (const [value, depth] of drain(pending)) {
    if (++values > schemaLimits.values) throw tooLarge(`has more than ${schemaLimits.values} values`)
    if (depth > schemaLimits.depth) throw tooLarge(`is nested more than ${schemaLimits.depth} levels deep`)
    // JSON.parse reads 1e999 as Infinity, which JSON.stringify turns into null.
    if (typeof value === 'number' && !Number.isFinite(value))
      throw invalidRequest('The schema contains a number that is not finite.', { issue: 'value' })
    if (typeof value === 'string') length += value.length
    if (isRecord(value)) for (const name of Object.keys(value)) length += name.length
    if (length > schemaLimits.length) throw tooLarge(`is longer than ${schemaLimits.length} characters`)
    if (typeof value !== 'object' || value === null) continue
    for (const inner of Object.values(value)) pending.push([inner, depth + 1])
  }
}

const tooLarge = (what: string) => invalidRequest(`The schema ${what}.`, { issue: 'value' })

/** Resolves `$ref`, which must be `#`, or `#` and a JSON pointer from the root. */
export function resolveReference(root: SchemaNode, from: SchemaNode): SchemaNode | undefined {
  const reference = readKeyword(from, '$ref')
  if (reference === undefined) return undefined
  if (typeof reference !== 'string') throw invalidKeyword(from, '$ref', 'must be a string', 'value')
  if (reference === '#') return root
  if (!reference.startsWith('#/'))
    throw invalidKeyword(from, '$ref', 'must be a JSON pointer within the schema, such as #/$defs/name')
  const danglingReference = () => invalidKeyword(from, '$ref', 'does not resolve to a schema', 'value')
  // Pointers in `at` are not percent-encoded. Decoding the reference gives each schema a single pointer.
  const pointer = decode(reference.slice(2))
  if (pointer === undefined) throw danglingReference()
  let found: unknown = root.schema
  for (const part of pointer.split('/')) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) throw danglingReference()
    found = (found as Record<string, unknown>)[name]
    // `$id` starts a new document, and pointers inside that document resolve from its root.
    if (isRecord(found) && typeof found.$id === 'string')
      throw invalidKeyword(from, '$ref', 'points into a schema with its own $id')
  }
  return childNode(root, pointer, found)
}

function decode(fragment: string): string | undefined {
  try {
    return decodeURIComponent(fragment)
  } catch {
    return undefined
  }
}
