/** Schemas that hold at the same place. */
import { isConstraining, readKeyword, type SchemaNode } from './keywords.ts'

/** Of none, anything holds. */
export type Conjunction = readonly SchemaNode[]

export const never: Conjunction = [{ schema: false, at: 'never' }]

/** Each schema once and in one order, without those that say nothing. */
export function conjoin(a: Conjunction, b: Conjunction): Conjunction {
  const nodes = new Map([...a, ...b].filter(isConstraining).map((node) => [node.at, node]))
  if ([...nodes.values()].some(({ schema }) => schema === false)) return never
  return [...nodes].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, node]) => node)
}

/** Names in it can hold any character, so nothing plain could stand between two. */
export const toKey = (conjunction: Conjunction): string => JSON.stringify(conjunction.map(({ at }) => at))

/** The same wherever it stands: references go from the root. */
export const toMeaningKey = (conjunction: Conjunction): string =>
  [...new Set(conjunction.map(({ schema }) => JSON.stringify(schema)))].sort().join(' & ')

/** Which schema says one of these, and which one it says; for messages. The first of both where it is said further inside. */
export function findKeyword(
  conjunction: Conjunction,
  ...keywords: readonly [string, ...string[]]
): readonly [SchemaNode, string] {
  for (const keyword of keywords)
    for (const node of conjunction) if (readKeyword(node, keyword) !== undefined) return [node, keyword]
  return [conjunction[0] ?? anything, keywords[0]]
}
const anything: SchemaNode = { schema: true, at: '#' }
