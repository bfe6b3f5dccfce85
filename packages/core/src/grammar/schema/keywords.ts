/** Supported keywords of JSON Schema, and access to their values. An error names an unknown keyword. */
import { invalidRequest, type LlmError } from '../../errors.ts'
import { isRecord } from '../../util/is-record.ts'

export type Schema = boolean | Readonly<Record<string, unknown>>

/** A schema and its JSON pointer, such as `#/properties/a`. */
export interface SchemaNode {
  readonly schema: Schema
  readonly at: string
}

/** Keywords that do not affect validity. */
const annotations = new Set([
  ...['$schema', '$id', 'id', '$comment', '$defs', 'definitions', '$vocabulary', '$anchor', '$dynamicAnchor'],
  ...['title', 'description', 'default', 'example', 'examples', 'deprecated', 'readOnly', 'writeOnly'],
  ...['contentEncoding', 'contentMediaType', 'contentSchema', 'discriminator', 'externalDocs', 'xml'],
])

const supportedKeywords = new Set([
  ...['type', 'nullable', 'enum', 'const', '$ref', 'allOf', 'anyOf', 'oneOf', 'not'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  ...['minLength', 'maxLength', 'pattern', 'format'],
  ...['items', 'prefixItems', 'additionalItems', 'minItems', 'maxItems', 'uniqueItems'],
  ...['properties', 'required', 'additionalProperties', 'patternProperties', 'propertyNames'],
  ...['minProperties', 'maxProperties'],
])

/** Throws an `LlmError` `invalid_request` for unsupported keywords, unless they are annotations. */
export function checkKeywords(node: SchemaNode): void {
  for (const keyword of Object.keys(node.schema))
    if (!supportedKeywords.has(keyword) && !annotations.has(keyword) && !keyword.startsWith('x-'))
      throw invalidKeyword(node, keyword, 'is not supported')
  // References inside a schema with `$id` resolve from that schema, not from the root.
  for (const keyword of ['$id', 'id'])
    if (node.at !== '#' && typeof readKeyword(node, keyword) === 'string')
      throw invalidKeyword(node, keyword, 'is only supported at the root')
}

/** Whether a schema can reject a value. */
export const isConstraining = ({ schema }: SchemaNode): boolean =>
  schema === false ||
  Object.keys(schema).some((keyword) => !annotations.has(keyword) && !keyword.startsWith('x-'))

/** @param issue `unsupported` if the schema is valid but has no grammar, `value` if it is invalid */
export const invalidKeyword = (
  { at }: Pick<SchemaNode, 'at'>,
  keyword: string,
  why: string,
  issue: 'unsupported' | 'value' = 'unsupported',
): LlmError => {
  const [name, path] = [keyword, at].map(shorten)
  return invalidRequest(`The JSON schema cannot be converted to a grammar: "${name}" at ${path} ${why}.`, {
    param: shorten(`${at}/${keyword}`),
    issue,
  })
}

/**
 * Shortens text for error messages. Names from clients can be megabytes long or contain unpaired surrogates.
 */
const shorten = (text: string) =>
  text.length > maxShownLength ? `${text.slice(0, maxShownLength).toWellFormed()}…` : text.toWellFormed()
const maxShownLength = 200

/** Reads an own property, never one of `Object.prototype`. */
export const readKeyword = ({ schema }: SchemaNode, keyword: string): unknown =>
  typeof schema === 'object' && Object.hasOwn(schema, keyword) ? schema[keyword] : undefined

/** Reads a number of characters, items or properties. */
export function readCount(node: SchemaNode, keyword: string): number | undefined {
  const value = readKeyword(node, keyword)
  if (value === undefined) return undefined
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0)
    throw invalidKeyword(node, keyword, 'must be an integer of at least 0', 'value')
  return value
}

/** Reads a minimum (default 0) and a maximum (default Infinity). */
export function readCounts(
  node: SchemaNode,
  minKeyword: string,
  maxKeyword: string,
): { min: number; max: number } {
  const min = readCount(node, minKeyword) ?? 0
  const max = readCount(node, maxKeyword) ?? Number.POSITIVE_INFINITY
  if (min > max) throw invalidKeyword(node, minKeyword, `is more than "${maxKeyword}"`, 'value')
  if (min > maxMinimum) throw invalidKeyword(node, minKeyword, `is more than ${maxMinimum}`, 'value')
  return { min, max: max > Number.MAX_SAFE_INTEGER ? Number.POSITIVE_INFINITY : max }
}

/** Maximum of `minLength`, `minItems` and `minProperties`. No output is that long. */
const maxMinimum = 1_000_000

export function readSchema(node: SchemaNode, keyword: string): SchemaNode | undefined {
  const value = readKeyword(node, keyword)
  return value === undefined ? undefined : childNode(node, keyword, value)
}

export function readSchemas(node: SchemaNode, keyword: string): readonly SchemaNode[] | undefined {
  const value = readKeyword(node, keyword)
  if (value === undefined) return undefined
  if (!Array.isArray(value)) throw invalidKeyword(node, keyword, 'must be an array of schemas', 'value')
  return value.map((schema, at) => childNode(node, `${keyword}/${at}`, schema))
}

/** Reads an object of schemas, by property name or by pattern. */
export function readSchemaMap(
  node: SchemaNode,
  keyword: string,
): readonly (readonly [name: string, node: SchemaNode])[] {
  const value = readKeyword(node, keyword)
  if (value === undefined) return []
  if (!isRecord(value)) throw invalidKeyword(node, keyword, 'must be an object of schemas', 'value')
  return Object.entries(value).map(([name, schema]) => [
    name,
    childNode(node, `${keyword}/${escapePointer(name)}`, schema),
  ])
}

export function childNode(node: SchemaNode, path: string, schema: unknown): SchemaNode {
  if (typeof schema !== 'boolean' && !isRecord(schema))
    throw invalidKeyword(node, path, 'must be a schema: an object or a boolean', 'value')
  return { schema, at: `${node.at}/${path}` }
}

const escapePointer = (name: string) => name.replaceAll('~', '~0').replaceAll('/', '~1')
