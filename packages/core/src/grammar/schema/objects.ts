/** Object schemas: declared properties in order of declaration, then undeclared properties. */
import {
  type Automaton,
  accepts,
  anyText,
  buildWordAutomaton,
  complement,
  intersect,
  isEmpty,
  union,
} from '../automata/automaton.ts'
import { choice, type Expression, impossible, optional, sequence, text } from '../gbnf/expressions.ts'
import type { Grammar } from '../gbnf/grammar.ts'
import { type Conjunction, conjoin, never, toKey } from './conjunction.ts'
import { space } from './json.ts'
import {
  invalidKeyword,
  readCounts,
  readKeyword,
  readSchema,
  readSchemaMap,
  type SchemaNode,
} from './keywords.ts'
import type { Notation } from './notation.ts'
import type { ObjectShape, PropertySet, ShapeSource } from './shape.ts'
import { buildPatternAutomaton, buildStringAutomaton, withKeywordError } from './strings.ts'

export const anyObject: ObjectShape = {
  type: 'object',
  properties: new Map(),
  otherProperties: [{ names: anyText, value: [], isExplicit: false }],
  required: [],
  min: 0,
  max: Number.POSITIVE_INFINITY,
  at: '#',
}

const maxProperties = 1_000
/** Maximum number of `patternProperties`. Each pattern can double the number of name sets. */
const maxPatterns = 4

export function readObject(node: SchemaNode, shapes: ShapeSource): ObjectShape {
  const { min, max } = readCounts(node, 'minProperties', 'maxProperties')
  const declared = readSchemaMap(node, 'properties')
  if (declared.length > maxProperties)
    throw invalidKeyword(node, 'properties', `has more than ${maxProperties} names`, 'value')
  const additional = readSchema(node, 'additionalProperties')
  const patterns = splitByPatterns(node, shapes)
  const names: readonly PropertySet[] = readPropertyNames(node, shapes)
  const unmatched = conjoin(additional ? [additional] : [], [])
  const otherProperties = patterns.map(({ names, value }) => ({
    ...{ names, value: value ?? unmatched },
    isExplicit: (value ?? additional) !== undefined,
  }))
  // `patternProperties` also applies to declared names. `additionalProperties` does not.
  const properties = declared.map(([name, value]): [string, Conjunction] => {
    const matched = patterns.find(({ names }) => accepts(names, name))?.value ?? []
    return [name, conjoin(conjoin([value], matched), findOtherProperty(names, name))]
  })
  return {
    ...intersectObjects({ ...anyObject, otherProperties }, { ...anyObject, otherProperties: names }),
    ...{ properties: new Map(properties), required: readRequired(node), min, max, at: node.at },
  }
}

function readRequired(node: SchemaNode): readonly string[] {
  const required = readKeyword(node, 'required') ?? []
  // In draft 3, `required` is a boolean inside the property.
  if (!Array.isArray(required) || required.some((name) => typeof name !== 'string'))
    throw invalidKeyword(node, 'required', 'must be an array of names', 'value')
  if (required.length > maxProperties)
    throw invalidKeyword(node, 'required', `has more than ${maxProperties} names`, 'value')
  return [...new Set<string>(required)]
}

/** Partitions names by the patterns that they match. `value` is absent for names that match no pattern. */
function splitByPatterns(
  node: SchemaNode,
  shapes: ShapeSource,
): readonly { readonly names: Automaton; readonly value?: Conjunction }[] {
  const patterns = readSchemaMap(node, 'patternProperties')
  if (patterns.length > maxPatterns)
    throw invalidKeyword(node, 'patternProperties', `has more than ${maxPatterns} patterns`)
  let split: readonly { names: Automaton; value?: Conjunction }[] = [{ names: anyText }]
  for (const [pattern, value] of patterns) {
    const found = buildPatternAutomaton(node, 'patternProperties', pattern, shapes.budget)
    const missed = complement(found)
    split = withKeywordError(node, 'patternProperties', () =>
      split.flatMap((set) => [
        { names: intersect(set.names, found), value: conjoin(set.value ?? [], [value]) },
        { ...set, names: intersect(set.names, missed) },
      ]),
    )
  }
  return split.filter(({ names }) => !isEmpty(names))
}

/** Returns the names that `propertyNames` accepts, as property sets. */
function readPropertyNames(node: SchemaNode, shapes: ShapeSource): readonly PropertySet[] {
  const schema = readSchema(node, 'propertyNames')
  if (!schema) return anyObject.otherProperties
  const sets = shapes.resolve([schema]).flatMap((shape) => {
    if (shape.type === 'string')
      return [withKeywordError(node, 'propertyNames', () => buildStringAutomaton(shape))]
    if (shape.type === 'values')
      return [buildWordAutomaton(shape.values.filter((value) => typeof value === 'string'))]
    return []
  })
  const [first, ...rest] = sets
  return first ? [{ names: rest.reduce(union, first), value: [], isExplicit: false }] : []
}

const findOtherProperty = (otherProperties: readonly PropertySet[], name: string): Conjunction =>
  otherProperties.find(({ names }) => accepts(names, name))?.value ?? never

const findProperty = ({ properties, otherProperties }: ObjectShape, name: string): Conjunction =>
  properties.get(name) ?? findOtherProperty(otherProperties, name)

export function intersectObjects(a: ObjectShape, b: ObjectShape): ObjectShape {
  const names = new Set([...a.properties.keys(), ...b.properties.keys()])
  return {
    type: 'object',
    properties: new Map(
      [...names].map((name) => [name, conjoin(findProperty(a, name), findProperty(b, name))]),
    ),
    otherProperties: a.otherProperties.flatMap((left) =>
      b.otherProperties.flatMap((right) => {
        const common = intersect(left.names, right.names)
        if (isEmpty(common)) return []
        return [
          {
            names: common,
            value: conjoin(left.value, right.value),
            isExplicit: left.isExplicit || right.isExplicit,
          },
        ]
      }),
    ),
    required: [...new Set([...a.required, ...b.required])],
    min: Math.max(a.min, b.min),
    max: Math.min(a.max, b.max),
    at: a.min > b.min ? a.at : b.at,
  }
}

/**
 * Removes undeclared properties, because models invent names. Keeps properties that `patternProperties` or
 * `additionalProperties` covers. Removes nothing if no property is declared or if `minProperties` needs more.
 */
export function withDeclaredOnly(shape: ObjectShape): ObjectShape {
  const { properties, required, otherProperties, min } = shape
  const named = [...new Set([...properties.keys(), ...required])]
  if (properties.size === 0 || named.length < min) return shape
  return {
    ...shape,
    properties: new Map(named.map((name) => [name, findProperty(shape, name)])),
    otherProperties: otherProperties.filter(({ isExplicit }) => isExplicit),
  }
}

export const isObjectEmpty = (shape: ObjectShape, isValueEmpty: (value: Conjunction) => boolean): boolean =>
  shape.min > shape.max ||
  shape.required.length > shape.max ||
  shape.required.some((name) => isValueEmpty(findProperty(shape, name)))

export function acceptsObject(
  shape: ObjectShape,
  value: Readonly<Record<string, unknown>>,
  acceptsValue: (values: Conjunction, value: unknown) => boolean,
): boolean {
  const names = Object.keys(value)
  return (
    names.length >= shape.min &&
    names.length <= shape.max &&
    shape.required.every((name) => Object.hasOwn(value, name)) &&
    names.every((name) => acceptsValue(findProperty(shape, name), value[name]))
  )
}

/**
 * Builds two rules per property. `next` is the rest of the object after a property. `key` is the rest of the
 * object after `nameStart`. If `minProperties` or `maxProperties` requires counting, both
 * rules exist once for each number of properties written so far.
 */
export function buildObjectExpression(
  shape: ObjectShape,
  grammar: Grammar,
  notation: Notation,
  ruleOf: (value: Conjunction) => Expression,
): Expression {
  const { required, min, max } = shape
  const names = [...new Set([...shape.properties.keys(), ...required])]
  const isRequired = new Set(required)
  const lastRequired = names.findLastIndex((name) => isRequired.has(name))
  const otherRules = buildOtherEntries(shape, names, grammar, notation, ruleOf)
  // The model can repeat an undeclared name, so only one undeclared property is certain to count.
  if (otherRules.length > 0 && min > required.length + 1)
    throw invalidKeyword(
      shape,
      'minProperties',
      'needs additionalProperties: false, or the names in "required"',
    )
  const isCounting =
    min > required.length || max < (otherRules.length > 0 ? Number.POSITIVE_INFINITY : names.length)
  const maxCount = isCounting ? (Number.isFinite(max) ? max : min) : 0
  if (maxCount > maxProperties)
    throw invalidKeyword(
      shape,
      Number.isFinite(max) ? 'maxProperties' : 'minProperties',
      `is more than ${maxProperties}`,
    )

  const comma = sequence(text(','), space, text(notation.nameStart))
  const canEnd = (at: number, count: number) => at > lastRequired && (!isCounting || count >= min)
  const buildNext = (at: number, count: number, key: Expression) =>
    canEnd(at, count) ? optional(sequence(comma, key)) : sequence(comma, key)

  // Builds the properties from last to first, so that the following rules exist.
  // The index of `keys` and `nexts` is the number of properties written so far.
  const numbers = Array.from({ length: maxCount + 1 }, (_, count) => count)
  const tail = otherRules.length > 0 ? numbers.map(() => grammar.reserve('others')) : []
  const isFull = (count: number) => isCounting && count >= max
  const increment = (count: number) => Math.min(count + 1, maxCount)
  let keys = numbers.map((count) => (isFull(count) ? impossible : (tail[count]?.rule ?? impossible)))
  let nexts = keys.map((key, count) => grammar.define('next', buildNext(names.length, count, key)))
  for (const [count, { setBody }] of tail.entries())
    setBody(sequence(choice(...otherRules), nexts[increment(count)] ?? impossible))
  for (const [at, name] of [...names.entries()].reverse()) {
    const entry = sequence(text(notation.writeName(name)), space, ruleOf(findProperty(shape, name)))
    const previous = keys
    const following = nexts
    keys = previous.map((skipped, count) => {
      const withIt = sequence(entry, following[increment(count)] ?? impossible)
      if (isFull(count)) return impossible
      return grammar.define('key', isRequired.has(name) ? withIt : choice(withIt, skipped))
    })
    nexts = keys.map((key, count) => grammar.define('next', buildNext(at, count, key)))
  }
  const some = sequence(text(notation.nameStart), keys[0] ?? impossible)
  return sequence(text('{'), canEnd(0, 0) ? optional(some) : some, text('}'))
}

/** Builds undeclared properties, without `nameStart`, as one expression per set of names. */
function buildOtherEntries(
  shape: ObjectShape,
  names: readonly string[],
  grammar: Grammar,
  notation: Notation,
  ruleOf: (value: Conjunction) => Expression,
): readonly Expression[] {
  const undeclared = names.length === 0 ? anyText : complement(buildWordAutomaton(names))
  return shape.otherProperties.flatMap(({ names: allowed, value }) => {
    if (toKey(value) === toKey(never)) return []
    const remaining = intersect(allowed, undeclared)
    return isEmpty(remaining) ? [] : [sequence(notation.buildName(remaining, grammar), space, ruleOf(value))]
  })
}
