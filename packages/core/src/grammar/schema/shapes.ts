/**
 * Resolves a schema to its shapes. Each shape is an alternative with one JSON type and all its constraints.
 * Several schemas for one value are combined by intersecting their shapes pairwise. Nested schemas are
 * resolved only when the compiler needs them.
 */
import { drain } from '../../util/drain.ts'
import { isRecord } from '../../util/is-record.ts'
import { WorkBudget } from '../automata/work-budget.ts'
import { acceptsArray, anyArray, intersectArrays, isArrayEmpty, readArray } from './arrays.ts'
import { type Conjunction, conjoin, toKey } from './conjunction.ts'
import {
  checkKeywords,
  invalidKeyword,
  readKeyword,
  readSchema,
  readSchemas,
  type SchemaNode,
} from './keywords.ts'
import { acceptsNumber, anyNumber, intersectNumbers, isNumberEmpty, readNumber } from './numbers.ts'
import { acceptsObject, anyObject, intersectObjects, isObjectEmpty, readObject } from './objects.ts'
import { resolveReference } from './references.ts'
import type { Shape, ShapeSource, ValuesShape } from './shape.ts'
import { acceptsString, anyString, intersectStrings, isStringEmpty, readString } from './strings.ts'

const maxShapes = 256
/** Maximum nesting of `$ref`, `allOf`, `anyOf` and `oneOf` around one schema. */
const maxReferenceDepth = 200
/** Number of levels that the emptiness check descends. */
const maxEmptinessDepth = 4

const toValuesShape = (...values: readonly unknown[]): ValuesShape => ({ type: 'values', values })

const types: Readonly<Record<string, readonly Shape[]>> = {
  null: [toValuesShape(null)],
  boolean: [toValuesShape(true, false)],
  number: [anyNumber],
  integer: [{ ...anyNumber, isInteger: true }],
  string: [anyString],
  array: [anyArray],
  object: [anyObject],
}
const allTypes = ['null', 'boolean', 'number', 'string', 'array', 'object']
const anything = allTypes.flatMap((type) => types[type] ?? [])

/** Resolves and caches the shapes of the schemas in one document. */
export class ShapeResolver implements ShapeSource {
  readonly budget = new WorkBudget()
  readonly #root: SchemaNode
  readonly #shapesByNode = new Map<string, readonly Shape[]>()
  readonly #shapesByKey = new Map<string, readonly Shape[]>()
  readonly #inProgress = new Set<string>()
  readonly #deferredChecks: (() => void)[] = []

  constructor(root: SchemaNode) {
    this.#root = root
  }

  resolve(conjunction: Conjunction): readonly Shape[] {
    this.budget.spend(10)
    const key = toKey(conjunction)
    const known = this.#shapesByKey.get(key)
    if (known) return known
    const [first, ...rest] = conjunction
    const shapes = rest.reduce(
      (shapes, node) => this.#intersect(shapes, this.#resolveNode(node), node),
      first ? this.#resolveNode(first) : anything,
    )
    this.#shapesByKey.set(key, shapes)
    return shapes
  }

  /** Runs checks that need all schemas resolved, because schemas can refer to each other. */
  runDeferredChecks(): void {
    for (const check of drain(this.#deferredChecks)) check()
  }

  /** Whether no value satisfies all schemas. Also returns false if `depth` levels are too few to prove it. */
  isEmpty(conjunction: Conjunction, depth = maxEmptinessDepth): boolean {
    return depth > 0 && this.resolve(conjunction).every((shape) => this.#isShapeEmpty(shape, depth))
  }

  accepts(conjunction: Conjunction, value: unknown): boolean {
    return (
      conjunction.length === 0 || this.resolve(conjunction).some((shape) => this.#acceptsValue(shape, value))
    )
  }

  #resolveNode(node: SchemaNode): readonly Shape[] {
    const known = this.#shapesByNode.get(node.at)
    if (known) return known
    if (this.#inProgress.has(node.at)) throw invalidKeyword(node, '$ref', 'refers to itself', 'value')
    if (this.#inProgress.size >= maxReferenceDepth)
      throw invalidKeyword(node, '$ref', `is nested in ${maxReferenceDepth} other references`, 'value')
    this.#inProgress.add(node.at)
    const shapes = this.#readNode(node)
    this.#inProgress.delete(node.at)
    this.#shapesByNode.set(node.at, shapes)
    return shapes
  }

  #readNode(node: SchemaNode): readonly Shape[] {
    if (node.schema === true) return anything
    if (node.schema === false) return []
    checkKeywords(node)
    const target = resolveReference(this.#root, node)
    const own = readTypes(node).flatMap((type) =>
      (types[type] ?? []).flatMap((shape) => this.#narrow(node, shape)),
    )
    const parts = [
      ...(target ? [this.#resolveNode(target)] : []),
      ...(readSchemas(node, 'allOf') ?? []).map((part) => this.#resolveNode(part)),
      ...this.#readAlternatives(node, 'anyOf'),
      ...this.#readAlternatives(node, 'oneOf'),
      ...readNot(node),
      ...readValues(node),
    ]
    return parts.reduce((shapes, part) => this.#intersect(shapes, part, node), own)
  }

  /** Applies the keywords for the type of the shape. */
  #narrow(node: SchemaNode, shape: Shape): readonly Shape[] {
    switch (shape.type) {
      case 'number':
        return this.#intersectPair(shape, readNumber(node))
      case 'string':
        return this.#intersectPair(shape, readString(node, this.budget))
      case 'array':
        return this.#intersectPair(shape, readArray(node))
      case 'object':
        return this.#intersectPair(shape, readObject(node, this))
      case 'values':
        return [shape]
    }
  }

  #readAlternatives(node: SchemaNode, keyword: 'anyOf' | 'oneOf'): readonly (readonly Shape[])[] {
    const options = readSchemas(node, keyword)
    if (!options) return []
    if (options.length === 0) throw invalidKeyword(node, keyword, 'is empty', 'value')
    if (keyword === 'oneOf') this.#deferredChecks.push(() => this.#checkExclusive(node, options))
    const shapes = options.flatMap((option) => this.#resolveNode(option))
    if (shapes.length > maxShapes)
      throw invalidKeyword(node, keyword, `has more than ${maxShapes} alternatives`)
    return [shapes]
  }

  /**
   * Rejects `oneOf` alternatives that can match the same value, because a grammar would accept such a value.
   */
  #checkExclusive(node: SchemaNode, options: readonly SchemaNode[]): void {
    for (const [at, option] of options.entries())
      for (const other of options.slice(at + 1))
        if (!this.isEmpty(conjoin([option], [other])))
          throw invalidKeyword(
            node,
            'oneOf',
            'has alternatives that can match the same value; use anyOf, or give each its own required const',
          )
  }

  #intersect(left: readonly Shape[], right: readonly Shape[], node: SchemaNode): readonly Shape[] {
    const shapes = left.flatMap((a) => right.flatMap((b) => this.#intersectPair(a, b)))
    if (shapes.length > maxShapes)
      throw invalidKeyword(
        node,
        'anyOf',
        `makes more than ${maxShapes} combinations with the keywords beside it`,
      )
    return shapes
  }

  #intersectPair(a: Shape, b: Shape): readonly Shape[] {
    this.budget.spend(estimateWeight(a) + estimateWeight(b))
    const shape = this.#intersectSameType(a, b)
    return shape && !this.#isShapeEmpty(shape, 1) ? [shape] : []
  }

  #intersectSameType(a: Shape, b: Shape): Shape | undefined {
    if (a === b) return a
    if (a.type === 'values') return toValuesShape(...a.values.filter((value) => this.#acceptsValue(b, value)))
    if (b.type === 'values') return toValuesShape(...b.values.filter((value) => this.#acceptsValue(a, value)))
    if (a.type === 'number' && b.type === 'number') return intersectNumbers(a, b)
    if (a.type === 'string' && b.type === 'string') return intersectStrings(a, b)
    if (a.type === 'array' && b.type === 'array') return intersectArrays(a, b)
    if (a.type === 'object' && b.type === 'object') return intersectObjects(a, b)
    return undefined
  }

  #isShapeEmpty(shape: Shape, depth: number): boolean {
    const isEmpty = (conjunction: Conjunction) => this.isEmpty(conjunction, depth - 1)
    switch (shape.type) {
      case 'values':
        return shape.values.length === 0
      case 'number':
        return isNumberEmpty(shape)
      case 'string':
        return isStringEmpty(shape)
      case 'array':
        return isArrayEmpty(shape, isEmpty)
      case 'object':
        return isObjectEmpty(shape, isEmpty)
    }
  }

  #acceptsValue(shape: Shape, value: unknown): boolean {
    this.budget.spend(1)
    const acceptsInner = (conjunction: Conjunction, inner: unknown) => this.accepts(conjunction, inner)
    switch (shape.type) {
      case 'values':
        return shape.values.some((other) => isDeepEqual(other, value))
      case 'number':
        return typeof value === 'number' && acceptsNumber(shape, value)
      case 'string':
        return typeof value === 'string' && acceptsString(shape, value)
      case 'array':
        return Array.isArray(value) && acceptsArray(shape, value, acceptsInner)
      case 'object':
        return isRecord(value) && acceptsObject(shape, value, acceptsInner)
    }
  }
}

/** Estimates the cost of intersecting a shape, in steps of the budget. */
function estimateWeight(shape: Shape): number {
  if (shape.type === 'string') return shape.texts.states.length * 10
  if (shape.type === 'object')
    return (
      shape.properties.size +
      shape.otherProperties.reduce((sum, { names }) => sum + names.states.length * 10, 1)
    )
  return shape.type === 'values' ? shape.values.length : 1
}

function readTypes(node: SchemaNode): readonly string[] {
  const type = readKeyword(node, 'type')
  const names = type === undefined ? allTypes : Array.isArray(type) ? type : [type]
  for (const name of names)
    if (typeof name !== 'string' || !Object.hasOwn(types, name))
      throw invalidKeyword(node, 'type', 'must be a JSON type or an array of JSON types', 'value')
  if (names.length === 0) throw invalidKeyword(node, 'type', 'is empty', 'value')
  const nullable = readKeyword(node, 'nullable')
  if (nullable !== undefined && typeof nullable !== 'boolean')
    throw invalidKeyword(node, 'nullable', 'must be a boolean', 'value')
  if (nullable && type === undefined) throw invalidKeyword(node, 'nullable', 'needs a "type" beside it')
  const unique = new Set<string>([...names, ...(nullable ? ['null'] : [])])
  if (unique.has('number')) unique.delete('integer')
  return [...unique]
}

function readValues(node: SchemaNode): readonly (readonly Shape[])[] {
  const list = readKeyword(node, 'enum')
  if (list !== undefined && !Array.isArray(list))
    throw invalidKeyword(node, 'enum', 'must be an array', 'value')
  if (list?.length === 0) throw invalidKeyword(node, 'enum', 'is empty: no value can satisfy it', 'value')
  const constant = readKeyword(node, 'const')
  return [
    ...(list ? [[toValuesShape(...list)]] : []),
    ...(constant === undefined ? [] : [[toValuesShape(constant)]]),
  ]
}

/** Supports `not` only with `true`, `{}` or `false`, because grammars have no complement. */
function readNot(node: SchemaNode): readonly (readonly Shape[])[] {
  const inner = readSchema(node, 'not')
  if (!inner || inner.schema === false) return []
  if (inner.schema === true || Object.keys(inner.schema).length === 0) return [[]]
  throw invalidKeyword(node, 'not', 'is not supported')
}

/** Compares JSON values. */
function isDeepEqual(a: unknown, b: unknown): boolean {
  if (Array.isArray(a))
    return Array.isArray(b) && a.length === b.length && a.every((item, at) => isDeepEqual(item, b[at]))
  if (!isRecord(a) || !isRecord(b)) return a === b
  const names = Object.keys(a)
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && isDeepEqual(a[name], b[name]))
  )
}
