/** A schema as a document: its size, and what `$ref` finds in it. Nothing is ever fetched. */
import { invalidRequest, LlmError } from '../../errors.ts'
import { drain } from '../../util/drain.ts'
import { isRecord } from '../../util/is-record.ts'
import { childNode, invalidKeyword, readKeyword, type SchemaNode } from './keywords.ts'

export const schemaLimits = {
  /** Of all names and texts together, in characters. */
  length: 512 * 1024,
  /** Objects, arrays and other values. */
  values: 50_000,
  depth: 100,
} as const

/** The whole schema. Throws `invalid_request` where it is no schema, or too large to work on. */
export function openSchema(schema: unknown): SchemaNode {
  if (typeof schema === 'boolean') return { schema, at: '#' }
  if (!isRecord(schema)) throw invalidRequest('The schema must be an object or a boolean.', { issue: 'type' })
  checkSize(schema)
  return { schema: normalizeJson(schema), at: '#' }
}

/** Without what only JavaScript has, such as `undefined`; in an app, schemas need not come from JSON. */
function normalizeJson(schema: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(JSON.stringify(schema))
  } catch (cause) {
    throw new LlmError('invalid_request', 'The schema is not JSON.', { issue: 'type' }, { cause })
  }
}

function checkSize(schema: unknown): void {
  const pending: (readonly [value: unknown, depth: number])[] = [[schema, 0]]
  let [values, length] = [0, 0]
  for (const [value, depth] of drain(pending)) {
    if (++values > schemaLimits.values) throw tooLarge(`of more than ${schemaLimits.values} values`)
    if (depth > schemaLimits.depth) throw tooLarge(`more than ${schemaLimits.depth} levels deep`)
    // JSON.parse reads 1e999 as infinite, and JSON.stringify makes null of it.
    if (typeof value === 'number' && !Number.isFinite(value))
      throw invalidRequest('The schema has a number that is too large, or none.', { issue: 'value' })
    if (typeof value === 'string') length += value.length
    if (isRecord(value)) for (const name of Object.keys(value)) length += name.length
    if (length > schemaLimits.length) throw tooLarge(`longer than ${schemaLimits.length} characters`)
    if (typeof value !== 'object' || value === null) continue
    for (const inner of Object.values(value)) pending.push([inner, depth + 1])
  }
}

const tooLarge = (what: string) => invalidRequest(`The schema is ${what}.`, { issue: 'value' })

/** What a `$ref` means. Known are `#` and JSON pointers behind it, from the root. */
export function resolveReference(root: SchemaNode, from: SchemaNode): SchemaNode | undefined {
  const reference = readKeyword(from, '$ref')
  if (reference === undefined) return undefined
  if (typeof reference !== 'string') throw invalidKeyword(from, '$ref', 'must be a string', 'value')
  if (reference === '#') return root
  if (!reference.startsWith('#/'))
    throw invalidKeyword(from, '$ref', 'must be a JSON pointer within the schema, such as #/$defs/name')
  const danglingReference = () => invalidKeyword(from, '$ref', 'points to nothing', 'value')
  // As `at` is written elsewhere, so that one schema has one name.
  const pointer = decode(reference.slice(2))
  if (pointer === undefined) throw danglingReference()
  let found: unknown = root.schema
  for (const part of pointer.split('/')) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) throw danglingReference()
    found = (found as Record<string, unknown>)[name]
    // Inside, pointers would begin at another root.
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
