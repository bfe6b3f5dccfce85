/** Schemas that apply to the same value. */
import { isConstraining, readKeyword, type SchemaNode } from './keywords.ts'

/** List of schemas. A value must satisfy every schema. An empty list accepts any value. */
export type Conjunction = readonly SchemaNode[]

export const never: Conjunction = [{ schema: false, at: 'never' }]

/** Joins two lists and sorts the result. Drops duplicates and schemas that constrain nothing. */
export function conjoin(a: Conjunction, b: Conjunction): Conjunction {
  const nodes = new Map([...a, ...b].filter(isConstraining).map((node) => [node.at, node]))
  if ([...nodes.values()].some(({ schema }) => schema === false)) return never
  return [...nodes].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, node]) => node)
}

/** Joins the pointers as JSON, because property names in pointers can contain any separator. */
export const toKey = (conjunction: Conjunction): string => JSON.stringify(conjunction.map(({ at }) => at))

/**
 * Key that is the same for equal schemas at different pointers. Equal schemas have the same meaning, because
 * references resolve from the root.
 */
export const toMeaningKey = (conjunction: Conjunction): string =>
  [...new Set(conjunction.map(({ schema }) => JSON.stringify(schema)))].sort().join(' & ')

/**
 * Finds the schema and keyword to name in an error message. If no schema has one of the keywords, returns the
 * first schema and the first keyword.
 */
export function findKeyword(
  conjunction: Conjunction,
  ...keywords: readonly [string, ...string[]]
): readonly [SchemaNode, string] {
  for (const keyword of keywords)
    for (const node of conjunction) if (readKeyword(node, keyword) !== undefined) return [node, keyword]
  return [conjunction[0] ?? anything, keywords[0]]
}
const anything: SchemaNode = { schema: true, at: '#' }
