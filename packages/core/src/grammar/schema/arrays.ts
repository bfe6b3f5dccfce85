/** Array schemas: `prefixItems`, `items` and the number of items. */
import { choice, type Expression, empty, optional, sequence, text } from '../gbnf/expressions.ts'
import type { Grammar } from '../gbnf/grammar.ts'
import { type Conjunction, conjoin } from './conjunction.ts'
import { space } from './json.ts'
import {
  invalidKeyword,
  readCounts,
  readKeyword,
  readSchema,
  readSchemas,
  type SchemaNode,
} from './keywords.ts'
import type { ArrayShape } from './shape.ts'

export const anyArray: ArrayShape = {
  type: 'array',
  first: [],
  rest: [],
  min: 0,
  max: Number.POSITIVE_INFINITY,
}

export function readArray(node: SchemaNode): ArrayShape {
  const { min, max } = readCounts(node, 'minItems', 'maxItems')
  const unique = readKeyword(node, 'uniqueItems')
  if (unique !== undefined && unique !== false && max > 1)
    throw invalidKeyword(node, 'uniqueItems', 'is not supported')
  // Before draft 2020-12, `items` was the list of first items, and `additionalItems` the schema of the rest.
  const isList = Array.isArray(readKeyword(node, 'items'))
  if (isList && readKeyword(node, 'prefixItems') !== undefined)
    throw invalidKeyword(node, 'items', 'must be a schema beside "prefixItems"', 'value')
  const first = readSchemas(node, isList ? 'items' : 'prefixItems') ?? []
  const rest = readSchema(node, isList ? 'additionalItems' : 'items')
  return {
    type: 'array',
    first: first.map((item) => conjoin([item], [])),
    rest: conjoin(rest ? [rest] : [], []),
    min,
    max,
  }
}

const itemAt = ({ first, rest }: ArrayShape, at: number): Conjunction => first[at] ?? rest

export const intersectArrays = (a: ArrayShape, b: ArrayShape): ArrayShape => ({
  type: 'array',
  first: Array.from({ length: Math.max(a.first.length, b.first.length) }, (_, at) =>
    conjoin(itemAt(a, at), itemAt(b, at)),
  ),
  rest: conjoin(a.rest, b.rest),
  min: Math.max(a.min, b.min),
  max: Math.min(a.max, b.max),
})

export function isArrayEmpty(shape: ArrayShape, isEmpty: (items: Conjunction) => boolean): boolean {
  const { first, rest, min, max } = shape
  return min > max || first.slice(0, min).some(isEmpty) || (min > first.length && isEmpty(rest))
}

export const acceptsArray = (
  shape: ArrayShape,
  value: readonly unknown[],
  acceptsItem: (items: Conjunction, item: unknown) => boolean,
): boolean =>
  value.length >= shape.min &&
  value.length <= shape.max &&
  value.every((item, at) => acceptsItem(itemAt(shape, at), item))

/** Builds items from last to first, so that each item can refer to the items after it. */
export function buildArrayExpression(
  shape: ArrayShape,
  grammar: Grammar,
  ruleOf: (items: Conjunction) => Expression,
): Expression {
  const { min, max } = shape
  const comma = sequence(text(','), space)
  const positions = Math.max(1, Math.min(shape.first.length, max))
  let following =
    max > positions
      ? grammar.repeat(sequence(comma, ruleOf(shape.rest)), Math.max(0, min - positions), max - positions)
      : empty
  for (let at = positions - 1; at > 0; at--) {
    const item = grammar.define('items', sequence(comma, ruleOf(itemAt(shape, at)), following))
    following = at < min ? item : optional(item)
  }
  const items = sequence(ruleOf(itemAt(shape, 0)), following)
  const content = max === 0 ? empty : min === 0 ? choice(items, empty) : items
  return sequence(text('['), content, text(']'))
}
