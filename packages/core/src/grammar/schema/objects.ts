/** Objects: the declared properties in their order, then any others that may be there. */
import {
  type Automaton,
  accepts,
  anyText,
  complement,
  intersect,
  isEmpty,
  union,
  words,
} from '../automata/automaton.ts'
import { stringRule } from '../automata/spell.ts'
import { choice, type Expression, impossible, optional, sequence, text } from '../gbnf/expressions.ts'
import type { Grammar } from '../gbnf/grammar.ts'
import { both, type Conjunction, keyOf, never } from './conjunction.ts'
import { space } from './json.ts'
import { type Node, read, readCounts, readNamed, readSchema, refuse } from './keywords.ts'
import type { Shapes } from './shapes.ts'
import { keep, patternAutomaton, stringAutomaton } from './strings.ts'

export interface ObjectShape {
  readonly type: 'object'
  readonly properties: ReadonlyMap<string, Conjunction>
  /** Of all other names: sets of them that have nothing in common, and what their values are. */
  readonly others: readonly Others[]
  readonly required: readonly string[]
  readonly min: number
  readonly max: number
  /** Where their number is bounded, for messages. */
  readonly at: string
}
interface Others {
  readonly names: Automaton
  readonly value: Conjunction
  /** Whether a schema speaks of them, and be it to say that they are anything. */
  readonly isSaid: boolean
}

export const anyObject: ObjectShape = {
  type: 'object',
  properties: new Map(),
  others: [{ names: anyText, value: [], isSaid: false }],
  required: [],
  min: 0,
  max: Number.POSITIVE_INFINITY,
  at: '#',
}

const maxProperties = 1_000
/** Each doubles the sets of names. */
const maxPatterns = 4

export function readObject(node: Node, shapes: Shapes): ObjectShape {
  const { min, max } = readCounts(node, 'minProperties', 'maxProperties')
  const declared = readNamed(node, 'properties')
  if (declared.length > maxProperties)
    throw refuse(node, 'properties', `has more than ${maxProperties} names`, 'value')
  const additional = readSchema(node, 'additionalProperties')
  const patterns = splitByPatterns(node, shapes)
  const names: readonly Others[] = namesOf(node, shapes)
  const unmatched = both(additional ? [additional] : [], [])
  const others = patterns.map(({ names, value }) => ({
    ...{ names, value: value ?? unmatched },
    isSaid: (value ?? additional) !== undefined,
  }))
  // What patterns say of a name, they say of a declared one, too; `additionalProperties` does not.
  const properties = declared.map(([name, value]): [string, Conjunction] => {
    const matched = patterns.find(({ names }) => accepts(names, name))?.value ?? []
    return [name, both(both([value], matched), otherOf(names, name))]
  })
  return {
    ...meetObjects({ ...anyObject, others }, { ...anyObject, others: names }),
    ...{ properties: new Map(properties), required: readRequired(node), min, max, at: node.at },
  }
}

function readRequired(node: Node): readonly string[] {
  const required = read(node, 'required') ?? []
  // Draft 3 says it inside of the property.
  if (!Array.isArray(required) || required.some((name) => typeof name !== 'string'))
    throw refuse(node, 'required', 'must be an array of names', 'value')
  if (required.length > maxProperties)
    throw refuse(node, 'required', `has more than ${maxProperties} names`, 'value')
  return [...new Set<string>(required)]
}

/** For each combination of patterns the names that match just these; without a value where they match none. */
function splitByPatterns(
  node: Node,
  shapes: Shapes,
): readonly { readonly names: Automaton; readonly value?: Conjunction }[] {
  const patterns = readNamed(node, 'patternProperties')
  if (patterns.length > maxPatterns)
    throw refuse(node, 'patternProperties', `has more than ${maxPatterns} patterns`)
  let split: readonly { names: Automaton; value?: Conjunction }[] = [{ names: anyText }]
  for (const [pattern, value] of patterns) {
    const found = patternAutomaton(node, 'patternProperties', pattern, shapes.effort)
    const missed = complement(found)
    split = keep(node, 'patternProperties', () =>
      split.flatMap((set) => [
        { names: intersect(set.names, found), value: both(set.value ?? [], [value]) },
        { ...set, names: intersect(set.names, missed) },
      ]),
    )
  }
  return split.filter(({ names }) => !isEmpty(names))
}

/** The names that `propertyNames` lets through. */
function namesOf(node: Node, shapes: Shapes): readonly Others[] {
  const schema = readSchema(node, 'propertyNames')
  if (!schema) return anyObject.others
  const sets = shapes.of([schema]).flatMap((shape) => {
    if (shape.type === 'string') return [keep(node, 'propertyNames', () => stringAutomaton(shape))]
    if (shape.type === 'values') return [words(shape.values.filter((value) => typeof value === 'string'))]
    return []
  })
  const [first, ...rest] = sets
  return first ? [{ names: rest.reduce(union, first), value: [], isSaid: false }] : []
}

/** What holds for a name that is not declared. */
const otherOf = (others: readonly Others[], name: string): Conjunction =>
  others.find(({ names }) => accepts(names, name))?.value ?? never

const propertyOf = ({ properties, others }: ObjectShape, name: string): Conjunction =>
  properties.get(name) ?? otherOf(others, name)

export function meetObjects(a: ObjectShape, b: ObjectShape): ObjectShape {
  const names = new Set([...a.properties.keys(), ...b.properties.keys()])
  return {
    type: 'object',
    properties: new Map([...names].map((name) => [name, both(propertyOf(a, name), propertyOf(b, name))])),
    others: a.others.flatMap((left) =>
      b.others.flatMap((right) => {
        const common = intersect(left.names, right.names)
        if (isEmpty(common)) return []
        return [{ names: common, value: both(left.value, right.value), isSaid: left.isSaid || right.isSaid }]
      }),
    ),
    required: [...new Set([...a.required, ...b.required])],
    min: Math.max(a.min, b.min),
    max: Math.min(a.max, b.max),
    at: a.min > b.min ? a.at : b.at,
  }
}

/** Without others that no schema speaks of, where there are enough properties without: nobody waits for them. */
export function declaredOnly(shape: ObjectShape): ObjectShape {
  const { properties, required, others, min } = shape
  const named = [...new Set([...properties.keys(), ...required])]
  if (properties.size === 0 || named.length < min) return shape
  return {
    ...shape,
    properties: new Map(named.map((name) => [name, propertyOf(shape, name)])),
    others: others.filter(({ isSaid }) => isSaid),
  }
}

export const isObjectEmpty = (shape: ObjectShape, isNothing: (value: Conjunction) => boolean): boolean =>
  shape.min > shape.max ||
  shape.required.length > shape.max ||
  shape.required.some((name) => isNothing(propertyOf(shape, name)))

export function hasObject(
  shape: ObjectShape,
  value: Readonly<Record<string, unknown>>,
  has: (values: Conjunction, value: unknown) => boolean,
): boolean {
  const names = Object.keys(value)
  return (
    names.length >= shape.min &&
    names.length <= shape.max &&
    shape.required.every((name) => Object.hasOwn(value, name)) &&
    names.every((name) => has(propertyOf(shape, name), value[name]))
  )
}

/**
 * Rules for each number of properties that are behind: `next`, what may follow, and `key`, the rest of one that has
 * begun. They count what has been said only where `minProperties` or `maxProperties` asks for it.
 */
export function objectExpression(
  shape: ObjectShape,
  grammar: Grammar,
  ruleOf: (value: Conjunction) => Expression,
): Expression {
  const { required, min, max } = shape
  const names = [...new Set([...shape.properties.keys(), ...required])]
  const isRequired = new Set(required)
  const lastRequired = names.findLastIndex((name) => isRequired.has(name))
  const others = otherEntries(shape, names, grammar, ruleOf)
  // A name can come twice among them: no more than one is sure to count.
  if (others.length > 0 && min > required.length + 1)
    throw refuse(shape, 'minProperties', 'needs additionalProperties: false, or the names in "required"')
  const counts = min > required.length || max < (others.length > 0 ? Number.POSITIVE_INFINITY : names.length)
  const top = counts ? (Number.isFinite(max) ? max : min) : 0
  if (top > maxProperties)
    throw refuse(
      shape,
      Number.isFinite(max) ? 'maxProperties' : 'minProperties',
      `is more than ${maxProperties}`,
    )

  const comma = sequence(text(','), space, text('"'))
  const mayEnd = (at: number, said: number) => at > lastRequired && (!counts || said >= min)
  const nextOf = (at: number, said: number, key: Expression) =>
    mayEnd(at, said) ? optional(sequence(comma, key)) : sequence(comma, key)

  // From the last to the first, so that what follows is there; by how many have been said.
  const numbers = Array.from({ length: top + 1 }, (_, said) => said)
  const tail = others.length > 0 ? numbers.map(() => grammar.reserve('others')) : []
  const full = (said: number) => counts && said >= max
  const after = (said: number) => Math.min(said + 1, top)
  let keys = numbers.map((said) => (full(said) ? impossible : (tail[said]?.rule ?? impossible)))
  let nexts = keys.map((key, said) => grammar.define('next', nextOf(names.length, said, key)))
  for (const [said, { become }] of tail.entries())
    become(sequence(choice(...others), nexts[after(said)] ?? impossible))
  for (const [at, name] of [...names.entries()].reverse()) {
    const entry = sequence(text(`${JSON.stringify(name).slice(1)}:`), space, ruleOf(propertyOf(shape, name)))
    const previous = keys
    const following = nexts
    keys = previous.map((skipped, said) => {
      const withIt = sequence(entry, following[after(said)] ?? impossible)
      if (full(said)) return impossible
      return grammar.define('key', isRequired.has(name) ? withIt : choice(withIt, skipped))
    })
    nexts = keys.map((key, said) => grammar.define('next', nextOf(at, said, key)))
  }
  const some = sequence(text('"'), keys[0] ?? impossible)
  return sequence(text('{'), mayEnd(0, 0) ? optional(some) : some, text('}'))
}

/** The rest of a name that is not declared, and its value. */
function otherEntries(
  shape: ObjectShape,
  names: readonly string[],
  grammar: Grammar,
  ruleOf: (value: Conjunction) => Expression,
): readonly Expression[] {
  const free = names.length === 0 ? anyText : complement(words(names))
  return shape.others.flatMap(({ names: allowed, value }) => {
    if (keyOf(value) === keyOf(never)) return []
    const left = intersect(allowed, free)
    return isEmpty(left) ? [] : [sequence(stringRule(left, grammar), text(':'), space, ruleOf(value))]
  })
}
