/** Schemas that hold at the same place. */
import { type Node, saysSomething } from './keywords.ts'

/** Of none, anything holds. */
export type Conjunction = readonly Node[]

export const never: Conjunction = [{ schema: false, at: 'never' }]

/** Each schema once and in one order, without those that say nothing. */
export function both(a: Conjunction, b: Conjunction): Conjunction {
  const nodes = new Map([...a, ...b].filter(saysSomething).map((node) => [node.at, node]))
  if ([...nodes.values()].some(({ schema }) => schema === false)) return never
  return [...nodes].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, node]) => node)
}

/** Names in it can hold any character, so nothing plain could stand between two. */
export const keyOf = (conjunction: Conjunction): string => JSON.stringify(conjunction.map(({ at }) => at))
