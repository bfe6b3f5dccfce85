/**
 * Numbers: ranges and multiples, kept digit by digit. Integers are written without a point, fractions without an
 * exponent where they are bounded, and so short that reading them cannot round one past its bound.
 */
import {
  type Automaton,
  explore,
  follow,
  intersect,
  minimize,
  noText,
  type State,
  union,
} from './automaton.ts'
import { type Node, read, refuse } from './keywords.ts'
import { whole } from './pattern.ts'

export interface NumberShape {
  readonly type: 'number'
  readonly integer: boolean
  readonly min: Bound
  readonly max: Bound
  readonly multiples: readonly number[]
}
export interface Bound {
  /** Infinite where there is none. */
  readonly value: number
  readonly exclusive: boolean
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

/** Digits of an integer: enough for 64 bits. */
const integerDigits = 20
/** Digits of any decimal that no reading changes (IEEE 754, double). */
const exactDigits = 15
const fractionDigits = 10
const maxMultiple = 1_000n
/** Of an integer that must be a multiple: the states for each digit are as many as the step. */
const multipleDigits = 9

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

function isMultiple(value: number, step: number): boolean {
  const [a, b] = [decimal(value), decimal(step)]
  const places = Math.max(a.places, b.places)
  return (a.digits * 10n ** BigInt(places - a.places)) % (b.digits * 10n ** BigInt(places - b.places)) === 0n
}

export const isPlain = ({ min, max, multiples }: NumberShape): boolean =>
  min === noMin && max === noMax && multiples.length === 0

/** The numbers as they are written. Throws `TooComplex`. */
export function numberAutomaton(shape: NumberShape): Automaton {
  // Of some steps every integer is a multiple.
  const multiples = shape.multiples.filter((step) => !shape.integer || !isMultiple(1, step))
  if (multiples.length > 0) return multiplesWithin(shape, multiples)
  if (shape.integer) return within(shape, 0, integerDigits)
  // Near a bound, so many digits in all that no two numbers are read as the same.
  const widest = Math.max(...[shape.min, shape.max].map(({ value }) => digitsOf(value)))
  const places = Math.max(0, Math.min(fractionDigits, exactDigits - widest))
  const far = within(shape, places, integerDigits)
  if (places === fractionDigits) return far
  return union(far, within(shape, fractionDigits, exactDigits - fractionDigits))
}

/** A multiple must stay one when it is read, so there are fewer digits. */
function multiplesWithin(shape: NumberShape, multiples: readonly number[]): Automaton {
  const wanted = Math.max(...multiples.map((step) => scale(step).places))
  const places = shape.integer ? 0 : wanted
  const range = within(shape, places, Math.min(exactDigits - places, multipleDigits))
  return multiples.reduce((all, step) => intersect(all, multiplesAutomaton(step, places)), range)
}

/** With so many decimal places, and so many digits before them. */
function within({ min, max }: NumberShape, places: number, digits: number): Automaton {
  const most = 10n ** BigInt(digits + places) - 1n
  return rangeAutomaton(bigMax(lowest(min, places), -most), bigMin(highest(max, places), most), places)
}

const digitsOf = (value: number) =>
  Number.isFinite(value) ? String(BigInt(Math.trunc(Math.abs(value)))).length : 1

const bigMax = (a: bigint, b: bigint) => (a > b ? a : b)
const bigMin = (a: bigint, b: bigint) => (a < b ? a : b)

/** A finite number as an integer and its decimal places. */
function decimal(value: number): { digits: bigint; places: number } {
  const [mantissa = '', exponent = '0'] = String(value).split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const places = fraction.length - Number(exponent)
  const digits = BigInt(whole + fraction)
  return places >= 0 ? { digits, places } : { digits: digits * 10n ** BigInt(-places), places: 0 }
}

function scale(step: number): { scaled: bigint | undefined; places: number } {
  const { digits, places } = decimal(step)
  return { scaled: places <= fractionDigits ? digits : undefined, places: Math.min(places, fractionDigits) }
}

/** The bound in units of the last place, rounded to the inside; beyond all digits where there is none. */
function lowest({ value, exclusive }: Bound, places: number): bigint {
  if (!Number.isFinite(value)) return -(10n ** 40n)
  const { digits, places: own } = decimal(value)
  if (own <= places) {
    const exact = digits * 10n ** BigInt(places - own)
    return exclusive ? exact + stepAt(value) : exact
  }
  const unit = 10n ** BigInt(own - places)
  return digits >= 0n ? (digits + unit - 1n) / unit : digits / unit
}

/** Beyond 2^53 integers that are close are read as the same number. */
const stepAt = (value: number) =>
  Number.isSafeInteger(Math.trunc(value))
    ? 1n
    : BigInt(2 ** Math.max(1, Math.ceil(Math.log2(Math.abs(value))) - 51))

const highest = ({ value, exclusive }: Bound, places: number): bigint =>
  -lowest({ value: -value, exclusive }, places)

/** Decimals from `low` to `high`, both in units of the last of so many places. */
function rangeAutomaton(low: bigint, high: bigint, places: number): Automaton {
  const negative = low < 0n ? decimals(bigMax(1n, -high), -low, places) : []
  const positive = high >= 0n ? decimals(bigMax(0n, low), high, places) : []
  const all = [...negative.map((option) => `-(?:${option})`), ...positive]
  if (all.length === 0) return noText
  const range = whole(all.join('|'))
  return places === 0 ? range : shortenFractions(range)
}

/** As patterns, with all their places written. */
function decimals(low: bigint, high: bigint, places: number): readonly string[] {
  if (low > high) return []
  if (places === 0) return integers(low, high)
  const unit = 10n ** BigInt(places)
  const [first, last] = [low / unit, high / unit]
  const fraction = (from: bigint, to: bigint) => `\\.(?:${sameLength(pad(from, places), pad(to, places))})`
  if (first === last) return [`${first}${fraction(low % unit, high % unit)}`]
  // Integers behind which any fraction may stand.
  const from = low % unit === 0n ? first : first + 1n
  const to = high % unit === unit - 1n ? last : last - 1n
  return [
    ...(from > first ? [`${first}${fraction(low % unit, unit - 1n)}`] : []),
    ...integers(from, to).map((option) => `(?:${option})\\.[0-9]{${places}}`),
    ...(to < last ? [`${last}${fraction(0n, high % unit)}`] : []),
  ]
}

const pad = (value: bigint, places: number) => String(value).padStart(places, '0')

/** Integers from 0 up, one pattern for each number of digits. */
function integers(low: bigint, high: bigint): readonly string[] {
  const options: string[] = []
  for (let from = low; from <= high; ) {
    const to = bigMin(high, 10n ** BigInt(String(from).length) - 1n)
    options.push(sameLength(String(from), String(to)))
    from = to + 1n
  }
  return options
}

/** Texts of digits from the first to the second, which is as long. */
function sameLength(from: string, to: string): string {
  const rest = from.length - 1
  if (rest < 0) return ''
  const [a, b] = [Number(from[0]), Number(to[0])]
  const [fromRest, toRest] = [from.slice(1), to.slice(1)]
  if (a === b) return `${a}(?:${sameLength(fromRest, toRest)})`
  const isLeast = /^0*$/.test(fromRest)
  const isMost = /^9*$/.test(toRest)
  const [low, high] = [isLeast ? a : a + 1, isMost ? b : b - 1]
  return [
    isLeast ? undefined : `${a}(?:${sameLength(fromRest, '9'.repeat(rest))})`,
    low <= high ? `[${low}-${high}][0-9]{${rest}}` : undefined,
    isMost ? undefined : `${b}(?:${sameLength('0'.repeat(rest), toRest)})`,
  ]
    .filter((option) => option !== undefined)
    .join('|')
}

/** `1.50` may end as `1.5`, and `1.00` as `1`: wherever only zeros would have to follow. */
function shortenFractions({ states }: Automaton): Automaton {
  const behind = (state: State | undefined, code: number) => follow(states, state, code)
  const endsInZeros = (state: State | undefined): boolean => {
    let at = state
    while (at && !at.accepting) at = behind(at, zero)
    return at !== undefined
  }
  const behindPoint = new Set(states.map((state) => behind(state, point)))
  return {
    states: states.map((state) => ({
      ...state,
      // A point needs a digit behind it.
      accepting: !behindPoint.has(state) && (endsInZeros(state) || endsInZeros(behind(state, point))),
    })),
  }
}
const [zero, point, minus] = [0x30, 0x2e, 0x2d]

/** Digits and points of which the number is a multiple; with so many places, of which any can be left out. */
function multiplesAutomaton(step: number, places: number): Automaton {
  const { digits, places: own } = decimal(step)
  // As many places as the step needs were asked for, or the number is an integer.
  const [factor, modulus] =
    own <= places ? [1n, digits * 10n ** BigInt(places - own)] : [10n ** BigInt(own - places), digits]
  const unit = (behind: number) => 10n ** BigInt(places - Math.max(behind, 0)) * factor
  const remainders = explore<readonly [behind: number, rest: bigint]>([-1, 0n], String, ([behind, rest]) => {
    const digitEdges = Array.from({ length: 10 }, (_, digit) => {
      const next = (rest * 10n + BigInt(digit)) % modulus
      return [zero + digit, zero + digit, [behind < 0 ? -1 : behind + 1, next]] as const
    })
    return {
      accepting: (rest * unit(behind)) % modulus === 0n,
      edges: [
        ...(behind < places ? digitEdges : []),
        ...(behind < 0 ? [[point, point, [0, rest]] as const, [minus, minus, [-1, rest]] as const] : []),
      ],
    }
  })
  // Of 1,000 the last three digits say it all.
  return minimize(remainders)
}
