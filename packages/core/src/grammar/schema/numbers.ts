/** Numbers: their bounds, and what they are multiples of. */
import { type Bound, highest, isMultiple, lowest, scale } from './decimals.ts'
import { type Node, read, refuse } from './keywords.ts'

export interface NumberShape {
  readonly type: 'number'
  readonly integer: boolean
  readonly min: Bound
  readonly max: Bound
  readonly multiples: readonly number[]
}

const { POSITIVE_INFINITY: endless } = Number
const noMin: Bound = { value: -endless, exclusive: false }
const noMax: Bound = { value: endless, exclusive: false }
export const anyNumber: NumberShape = {
  type: 'number',
  integer: false,
  min: noMin,
  max: noMax,
  multiples: [],
}

/** Of the digits alone. */
const maxMultiple = 1_000n

export function readNumber(node: Node): NumberShape {
  const min = tighter(readBounds(node, 'minimum', 'exclusiveMinimum', noMin), 1)
  const max = tighter(readBounds(node, 'maximum', 'exclusiveMaximum', noMax), -1)
  if (isBeyond(min, max)) throw refuse(node, 'minimum', 'leaves no number below "maximum"', 'value')
  const shape = withFormat(node, { ...anyNumber, min, max })
  const multiple = readFinite(node, 'multipleOf')
  if (multiple === undefined) return shape
  if (multiple <= 0) throw refuse(node, 'multipleOf', 'must be above 0', 'value')
  const { scaled } = scale(multiple)
  if (scaled === undefined || scaled > maxMultiple)
    throw refuse(node, 'multipleOf', 'is supported to 10 decimals, and to 1000 without its point')
  return { ...shape, multiples: [multiple] }
}

function readFinite(node: Node, keyword: string): number | undefined {
  const value = read(node, keyword)
  if (value === undefined || (typeof value === 'number' && Number.isFinite(value))) return value
  throw refuse(node, keyword, 'must be a number', 'value')
}

/** Draft 4 says `exclusiveMinimum: true` beside `minimum`, the later ones a number of its own. */
function readBounds(node: Node, inclusive: string, exclusive: string, none: Bound): readonly Bound[] {
  const bound = readFinite(node, inclusive)
  const flag = read(node, exclusive)
  const isFlag = typeof flag === 'boolean'
  const other = isFlag ? undefined : readFinite(node, exclusive)
  return [
    bound === undefined ? none : { value: bound, exclusive: isFlag && flag },
    other === undefined ? none : { value: other, exclusive: true },
  ]
}

/** OpenAPI's formats of numbers. */
function withFormat(node: Node, shape: NumberShape): NumberShape {
  const format = read(node, 'format')
  const size = format === 'int32' ? 31 : format === 'int64' ? 63 : undefined
  if (size === undefined) return shape
  const range = {
    min: { value: -(2 ** size), exclusive: false },
    max: { value: 2 ** size - (size === 31 ? 1 : 1024), exclusive: false },
  }
  return { ...meetNumbers(shape, { ...anyNumber, ...range }), integer: true }
}

/** The tighter of bounds from one side: 1 for the larger, -1 for the smaller. */
const tighter = (bounds: readonly Bound[], side: 1 | -1): Bound =>
  bounds.reduce((a, b) => {
    if (a.value === b.value) return a.exclusive ? a : b
    return a.value > b.value === (side === 1) ? a : b
  })

const isBeyond = (min: Bound, max: Bound) =>
  min.value > max.value || (min.value === max.value && (min.exclusive || max.exclusive))

export const meetNumbers = (a: NumberShape, b: NumberShape): NumberShape => ({
  type: 'number',
  integer: a.integer || b.integer,
  min: tighter([a.min, b.min], 1),
  max: tighter([a.max, b.max], -1),
  multiples: [...new Set([...a.multiples, ...b.multiples])],
})

export function isNumberEmpty({ integer, min, max }: NumberShape): boolean {
  if (isBeyond(min, max)) return true
  if (!integer || !Number.isFinite(min.value) || !Number.isFinite(max.value)) return false
  return lowest(min, 0) > highest(max, 0)
}

export function hasNumber(shape: NumberShape, value: number): boolean {
  const { min, max } = shape
  if (value < min.value || (min.exclusive && value === min.value)) return false
  if (value > max.value || (max.exclusive && value === max.value)) return false
  return (
    (!shape.integer || Number.isInteger(value)) && shape.multiples.every((step) => isMultiple(value, step))
  )
}

export const isPlain = ({ min, max, multiples }: NumberShape): boolean =>
  min === noMin && max === noMax && multiples.length === 0
