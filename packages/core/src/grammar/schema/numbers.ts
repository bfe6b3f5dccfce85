/** Number schemas: bounds and `multipleOf`. */
import { isMultiple, type NumberBound, scale, toHighestUnits, toLowestUnits } from './decimals.ts'
import { invalidKeyword, readKeyword, type SchemaNode } from './keywords.ts'
import type { NumberShape } from './shape.ts'

const noMin: NumberBound = { value: Number.NEGATIVE_INFINITY, isExclusive: false }
const noMax: NumberBound = { value: Number.POSITIVE_INFINITY, isExclusive: false }
export const anyNumber: NumberShape = {
  type: 'number',
  isInteger: false,
  min: noMin,
  max: noMax,
  multiples: [],
}

/** Largest `multipleOf` after removal of the decimal point: 0.25 counts as 25. */
const maxMultiple = 1_000n

export function readNumber(node: SchemaNode): NumberShape {
  const min = pickTighter(readBounds(node, 'minimum', 'exclusiveMinimum', noMin), 1)
  const max = pickTighter(readBounds(node, 'maximum', 'exclusiveMaximum', noMax), -1)
  if (isBeyond(min, max)) throw invalidKeyword(node, 'minimum', 'leaves no number below "maximum"', 'value')
  const shape = withFormat(node, { ...anyNumber, min, max })
  const multiple = readFinite(node, 'multipleOf')
  if (multiple === undefined) return shape
  if (multiple <= 0) throw invalidKeyword(node, 'multipleOf', 'must be above 0', 'value')
  const { scaled } = scale(multiple)
  if (scaled === undefined || scaled > maxMultiple)
    throw invalidKeyword(
      node,
      'multipleOf',
      'is supported with up to 10 decimals, and up to 1000 without its decimal point',
    )
  return { ...shape, multiples: [multiple] }
}

function readFinite(node: SchemaNode, keyword: string): number | undefined {
  const value = readKeyword(node, keyword)
  if (value === undefined || (typeof value === 'number' && Number.isFinite(value))) return value
  throw invalidKeyword(node, keyword, 'must be a number', 'value')
}

/** In draft 4, `exclusiveMinimum` is a boolean beside `minimum`. Since draft 6, it is a number. */
function readBounds(
  node: SchemaNode,
  inclusiveKeyword: string,
  exclusiveKeyword: string,
  none: NumberBound,
): readonly NumberBound[] {
  const bound = readFinite(node, inclusiveKeyword)
  const flag = readKeyword(node, exclusiveKeyword)
  const isFlag = typeof flag === 'boolean'
  const other = isFlag ? undefined : readFinite(node, exclusiveKeyword)
  return [
    bound === undefined ? none : { value: bound, isExclusive: isFlag && flag },
    other === undefined ? none : { value: other, isExclusive: true },
  ]
}

/** Applies OpenAPI's formats `int32` and `int64`. */
function withFormat(node: SchemaNode, shape: NumberShape): NumberShape {
  const format = readKeyword(node, 'format')
  const size = format === 'int32' ? 31 : format === 'int64' ? 63 : undefined
  if (size === undefined) return shape
  const range = {
    min: { value: -(2 ** size), isExclusive: false },
    max: { value: 2 ** size - (size === 31 ? 1 : 1024), isExclusive: false },
  }
  return { ...intersectNumbers(shape, { ...anyNumber, ...range }), isInteger: true }
}

/** Returns the largest lower bound (`side` 1) or the smallest upper bound (-1). */
const pickTighter = (bounds: readonly NumberBound[], side: 1 | -1): NumberBound =>
  bounds.reduce((a, b) => {
    if (a.value === b.value) return a.isExclusive ? a : b
    return a.value > b.value === (side === 1) ? a : b
  })

const isBeyond = (min: NumberBound, max: NumberBound) =>
  min.value > max.value || (min.value === max.value && (min.isExclusive || max.isExclusive))

export const intersectNumbers = (a: NumberShape, b: NumberShape): NumberShape => ({
  type: 'number',
  isInteger: a.isInteger || b.isInteger,
  min: pickTighter([a.min, b.min], 1),
  max: pickTighter([a.max, b.max], -1),
  multiples: [...new Set([...a.multiples, ...b.multiples])],
})

export function isNumberEmpty({ isInteger, min, max }: NumberShape): boolean {
  if (isBeyond(min, max)) return true
  if (!isInteger || !Number.isFinite(min.value) || !Number.isFinite(max.value)) return false
  return toLowestUnits(min, 0) > toHighestUnits(max, 0)
}

export function acceptsNumber(shape: NumberShape, value: number): boolean {
  const { min, max } = shape
  if (value < min.value || (min.isExclusive && value === min.value)) return false
  if (value > max.value || (max.isExclusive && value === max.value)) return false
  return (
    (!shape.isInteger || Number.isInteger(value)) && shape.multiples.every((step) => isMultiple(value, step))
  )
}

export const isUnbounded = ({ min, max, multiples }: NumberShape): boolean =>
  min === noMin && max === noMax && multiples.length === 0
