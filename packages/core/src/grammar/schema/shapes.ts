/**
 * What a schema takes, as a list of shapes: each of one type, with all that is said about it in one place. To
 * combine schemas is to meet their shapes pair by pair; what lies deeper stays a conjunction until it is needed.
 */

import { Effort } from '../automata/effort.ts'
import { type ArrayShape, anyArray, hasArray, isArrayEmpty, meetArrays, readArray } from './arrays.ts'
import { both, type Conjunction, keyOf } from './conjunction.ts'
import { checkKeywords, isRecord, type Node, read, readSchema, readSchemas, refuse } from './keywords.ts'
import { anyNumber, hasNumber, isNumberEmpty, meetNumbers, type NumberShape, readNumber } from './numbers.ts'
import { anyObject, hasObject, isObjectEmpty, meetObjects, type ObjectShape, readObject } from './objects.ts'
import { resolve } from './references.ts'
import { anyString, hasString, isStringEmpty, meetStrings, readString, type StringShape } from './strings.ts'

export type Shape = NumberShape | StringShape | ArrayShape | ObjectShape | ValuesShape

/** These values and no other: of `enum` and `const`, and all of null and boolean. */
export interface ValuesShape {
  readonly type: 'values'
  readonly values: readonly unknown[]
}

const maxShapes = 256
/** References and combinations inside each other, at one place. */
const maxOpen = 200
/** How deep it looks for a reason why nothing satisfies a schema. */
const maxProof = 4

const values = (...values: readonly unknown[]): ValuesShape => ({ type: 'values', values })

const types: Readonly<Record<string, readonly Shape[]>> = {
  null: [values(null)],
  boolean: [values(true, false)],
  number: [anyNumber],
  integer: [{ ...anyNumber, integer: true }],
  string: [anyString],
  array: [anyArray],
  object: [anyObject],
}
const all = ['null', 'boolean', 'number', 'string', 'array', 'object']
const anything = all.flatMap((type) => types[type] ?? [])

/** The shapes of one document's schemas. */
export class Shapes {
  readonly effort = new Effort()
  readonly #root: Node
  readonly #known = new Map<string, readonly Shape[]>()
  readonly #met = new Map<string, readonly Shape[]>()
  readonly #open = new Set<string>()
  readonly #unproven: (() => void)[] = []

  constructor(root: Node) {
    this.#root = root
  }

  of(conjunction: Conjunction): readonly Shape[] {
    this.effort.spend(10)
    const key = keyOf(conjunction)
    const known = this.#met.get(key)
    if (known) return known
    const [first, ...rest] = conjunction
    const shapes = rest.reduce(
      (shapes, node) => this.#meet(shapes, this.#ofNode(node), node),
      first ? this.#ofNode(first) : anything,
    )
    this.#met.set(key, shapes)
    return shapes
  }

  /** Looks at what had to wait until all schemas are read: they can refer to each other. */
  prove(): void {
    for (let next = this.#unproven.pop(); next; next = this.#unproven.pop()) next()
  }

  /** Whether it is known that nothing satisfies all of them. */
  isEmpty(conjunction: Conjunction, depth = maxProof): boolean {
    return depth > 0 && this.of(conjunction).every((shape) => this.#isShapeEmpty(shape, depth))
  }

  has(conjunction: Conjunction, value: unknown): boolean {
    return conjunction.length === 0 || this.of(conjunction).some((shape) => this.#hasValue(shape, value))
  }

  #ofNode(node: Node): readonly Shape[] {
    const known = this.#known.get(node.at)
    if (known) return known
    if (this.#open.has(node.at)) throw refuse(node, '$ref', 'leads back to itself', 'value')
    if (this.#open.size >= maxOpen) throw refuse(node, '$ref', `is behind ${maxOpen} others`, 'value')
    this.#open.add(node.at)
    const shapes = this.#read(node)
    this.#open.delete(node.at)
    this.#known.set(node.at, shapes)
    return shapes
  }

  #read(node: Node): readonly Shape[] {
    if (node.schema === true) return anything
    if (node.schema === false) return []
    checkKeywords(node)
    const target = resolve(this.#root, node)
    const own = readTypes(node).flatMap((type) =>
      (types[type] ?? []).flatMap((shape) => this.#narrow(node, shape)),
    )
    const parts = [
      ...(target ? [this.#ofNode(target)] : []),
      ...(readSchemas(node, 'allOf') ?? []).map((part) => this.#ofNode(part)),
      ...this.#alternatives(node, 'anyOf'),
      ...this.#alternatives(node, 'oneOf'),
      ...readNot(node),
      ...readValues(node),
    ]
    return parts.reduce((shapes, part) => this.#meet(shapes, part, node), own)
  }

  /** What the schema itself says about values of this type. */
  #narrow(node: Node, shape: Shape): readonly Shape[] {
    switch (shape.type) {
      case 'number':
        return this.#meetShapes(shape, readNumber(node))
      case 'string':
        return this.#meetShapes(shape, readString(node, this.effort))
      case 'array':
        return this.#meetShapes(shape, readArray(node))
      case 'object':
        return this.#meetShapes(shape, readObject(node, this))
      case 'values':
        return [shape]
    }
  }

  #alternatives(node: Node, keyword: 'anyOf' | 'oneOf'): readonly (readonly Shape[])[] {
    const options = readSchemas(node, keyword)
    if (!options) return []
    if (options.length === 0) throw refuse(node, keyword, 'is empty', 'value')
    if (keyword === 'oneOf') this.#unproven.push(() => this.#checkExclusive(node, options))
    const shapes = options.flatMap((option) => this.#ofNode(option))
    if (shapes.length > maxShapes) throw refuse(node, keyword, `has more than ${maxShapes} alternatives`)
    return [shapes]
  }

  /** A grammar takes what any branch takes: the same as one branch only where no two take the same value. */
  #checkExclusive(node: Node, options: readonly Node[]): void {
    for (const [at, option] of options.entries())
      for (const other of options.slice(at + 1))
        if (!this.isEmpty(both([option], [other])))
          throw refuse(
            node,
            'oneOf',
            'has alternatives that may hold at the same time; say anyOf, or tell them apart by a required const',
          )
  }

  #meet(left: readonly Shape[], right: readonly Shape[], node: Node): readonly Shape[] {
    const shapes = left.flatMap((a) => right.flatMap((b) => this.#meetShapes(a, b)))
    if (shapes.length > maxShapes)
      throw refuse(node, 'anyOf', `makes more than ${maxShapes} combinations with what stands beside it`)
    return shapes
  }

  #meetShapes(a: Shape, b: Shape): readonly Shape[] {
    this.effort.spend(weightOf(a) + weightOf(b))
    const met = this.#meetSame(a, b)
    return met && !this.#isShapeEmpty(met, 1) ? [met] : []
  }

  #meetSame(a: Shape, b: Shape): Shape | undefined {
    if (a === b) return a
    if (a.type === 'values') return values(...a.values.filter((value) => this.#hasValue(b, value)))
    if (b.type === 'values') return values(...b.values.filter((value) => this.#hasValue(a, value)))
    if (a.type === 'number' && b.type === 'number') return meetNumbers(a, b)
    if (a.type === 'string' && b.type === 'string') return meetStrings(a, b)
    if (a.type === 'array' && b.type === 'array') return meetArrays(a, b)
    if (a.type === 'object' && b.type === 'object') return meetObjects(a, b)
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

  #hasValue(shape: Shape, value: unknown): boolean {
    this.effort.spend(1)
    const has = (conjunction: Conjunction, inner: unknown) => this.has(conjunction, inner)
    switch (shape.type) {
      case 'values':
        return shape.values.some((other) => isSame(other, value))
      case 'number':
        return typeof value === 'number' && hasNumber(shape, value)
      case 'string':
        return typeof value === 'string' && hasString(shape, value)
      case 'array':
        return Array.isArray(value) && hasArray(shape, value, has)
      case 'object':
        return isRecord(value) && hasObject(shape, value, has)
    }
  }
}

/** How much work it is to combine it. */
function weightOf(shape: Shape): number {
  if (shape.type === 'string') return shape.texts.states.length * 10
  if (shape.type === 'object')
    return shape.properties.size + shape.others.reduce((sum, { names }) => sum + names.states.length * 10, 1)
  return shape.type === 'values' ? shape.values.length : 1
}

function readTypes(node: Node): readonly string[] {
  const type = read(node, 'type')
  const names = type === undefined ? all : Array.isArray(type) ? type : [type]
  for (const name of names)
    if (typeof name !== 'string' || !Object.hasOwn(types, name))
      throw refuse(node, 'type', 'must be a type of JSON or a list of them', 'value')
  if (names.length === 0) throw refuse(node, 'type', 'is empty', 'value')
  const nullable = read(node, 'nullable')
  if (nullable !== undefined && typeof nullable !== 'boolean')
    throw refuse(node, 'nullable', 'must be a boolean', 'value')
  if (nullable && type === undefined) throw refuse(node, 'nullable', 'needs a "type" beside it')
  const unique = new Set<string>([...names, ...(nullable ? ['null'] : [])])
  if (unique.has('number')) unique.delete('integer')
  return [...unique]
}

function readValues(node: Node): readonly (readonly Shape[])[] {
  const list = read(node, 'enum')
  if (list !== undefined && !Array.isArray(list)) throw refuse(node, 'enum', 'must be an array', 'value')
  if (list?.length === 0) throw refuse(node, 'enum', 'is empty: no value can satisfy it', 'value')
  const constant = read(node, 'const')
  return [...(list ? [[values(...list)]] : []), ...(constant === undefined ? [] : [[values(constant)]])]
}

/** Only of all and nothing: a grammar says what may come, not what may not. */
function readNot(node: Node): readonly (readonly Shape[])[] {
  const inner = readSchema(node, 'not')
  if (!inner || inner.schema === false) return []
  if (inner.schema === true || Object.keys(inner.schema).length === 0) return [[]]
  throw refuse(node, 'not', 'is not supported')
}

/** As JSON compares values. */
function isSame(a: unknown, b: unknown): boolean {
  if (Array.isArray(a))
    return Array.isArray(b) && a.length === b.length && a.every((item, at) => isSame(item, b[at]))
  if (!isRecord(a) || !isRecord(b)) return a === b
  const names = Object.keys(a)
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && isSame(a[name], b[name]))
  )
}
