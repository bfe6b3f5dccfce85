/** Arrays: items by their place, all others alike, and how many. */

import { choice, type Expression, nothing, optional, sequence, text } from '../gbnf/expressions.ts'
import type { Grammar } from '../gbnf/grammar.ts'
import { both, type Conjunction } from './conjunction.ts'
import { space } from './json.ts'
import { type Node, read, readCounts, readSchema, readSchemas, refuse } from './keywords.ts'

export interface ArrayShape {
  readonly type: 'array'
  /** Of the first items, one for each place. */
  readonly first: readonly Conjunction[]
  readonly rest: Conjunction
  readonly min: number
  readonly max: number
}

export const anyArray: ArrayShape = {
  type: 'array',
  first: [],
  rest: [],
  min: 0,
  max: Number.POSITIVE_INFINITY,
}

export function readArray(node: Node): ArrayShape {
  const { min, max } = readCounts(node, 'minItems', 'maxItems')
  const unique = read(node, 'uniqueItems')
  if (unique !== undefined && unique !== false && max > 1)
    throw refuse(node, 'uniqueItems', 'is not supported')
  // Before 2020-12, `items` was the list and `additionalItems` the rest.
  const isList = Array.isArray(read(node, 'items'))
  if (isList && read(node, 'prefixItems') !== undefined)
    throw refuse(node, 'items', 'must be a schema, beside "prefixItems"', 'value')
  const first = readSchemas(node, isList ? 'items' : 'prefixItems') ?? []
  const rest = readSchema(node, isList ? 'additionalItems' : 'items')
  return {
    type: 'array',
    first: first.map((item) => both([item], [])),
    rest: both(rest ? [rest] : [], []),
    min,
    max,
  }
}

const itemAt = ({ first, rest }: ArrayShape, at: number): Conjunction => first[at] ?? rest

export const meetArrays = (a: ArrayShape, b: ArrayShape): ArrayShape => ({
  type: 'array',
  first: Array.from({ length: Math.max(a.first.length, b.first.length) }, (_, at) =>
    both(itemAt(a, at), itemAt(b, at)),
  ),
  rest: both(a.rest, b.rest),
  min: Math.max(a.min, b.min),
  max: Math.min(a.max, b.max),
})

export function isArrayEmpty(shape: ArrayShape, isEmpty: (items: Conjunction) => boolean): boolean {
  const { first, rest, min, max } = shape
  return min > max || first.slice(0, min).some(isEmpty) || (min > first.length && isEmpty(rest))
}

export const hasArray = (
  shape: ArrayShape,
  value: readonly unknown[],
  has: (items: Conjunction, item: unknown) => boolean,
): boolean =>
  value.length >= shape.min &&
  value.length <= shape.max &&
  value.every((item, at) => has(itemAt(shape, at), item))

/** From the last place to the first: each has behind it what may follow. */
export function arrayExpression(
  shape: ArrayShape,
  grammar: Grammar,
  ruleOf: (items: Conjunction) => Expression,
): Expression {
  const { min, max } = shape
  const comma = sequence(text(','), space)
  const places = Math.max(1, Math.min(shape.first.length, max))
  let following =
    max > places
      ? grammar.repeat(sequence(comma, ruleOf(shape.rest)), Math.max(0, min - places), max - places)
      : nothing
  for (let at = places - 1; at > 0; at--) {
    const item = grammar.define('items', sequence(comma, ruleOf(itemAt(shape, at)), following))
    following = at < min ? item : optional(item)
  }
  const items = sequence(ruleOf(itemAt(shape, 0)), following)
  const content = max === 0 ? nothing : min === 0 ? choice(items, nothing) : items
  return sequence(text('['), content, text(']'))
}
