/**
 * Automata over the digits of numbers. Integers have no decimal point. Bounded fractions have no exponent.
 * The number of digits is limited, so that parsing to a double cannot round a number past its bound.
 */
import {
  type Automaton,
  type DfaEdge,
  type DfaState,
  explore,
  follow,
  intersect,
  minimize,
  noText,
  union,
} from '../automata/automaton.ts'
import { compileFullMatch } from '../automata/pattern.ts'
import { fractionDigits, isMultiple, scale, toDecimal, toHighestUnits, toLowestUnits } from './decimals.ts'
import type { NumberShape } from './shape.ts'

/** Maximum number of digits of an integer, enough for 64 bits. */
const integerDigits = 20
/** Number of decimal digits that a double represents without loss (IEEE 754). */
const exactDigits = 15
/** Maximum digits of a multiple before the decimal point. Each digit adds at most one state per remainder. */
const multipleDigits = 9

/** Throws `TooComplexError`. */
export function buildNumberAutomaton(shape: NumberShape): Automaton {
  // Every integer is a multiple of 1, 0.5, 0.1 and every other step that divides 1.
  const multiples = shape.multiples.filter((step) => !shape.isInteger || !isMultiple(1, step))
  if (multiples.length > 0) return buildBoundedMultiples(shape, multiples)
  if (shape.isInteger) return buildBoundedAutomaton(shape, 0, integerDigits)
  // Near a bound, the total number of digits is limited, so that no two numbers parse as the same double.
  const widest = Math.max(...[shape.min, shape.max].map(({ value }) => countDigits(value)))
  const places = Math.max(0, Math.min(fractionDigits, exactDigits - widest))
  const far = buildBoundedAutomaton(shape, places, integerDigits)
  if (places === fractionDigits) return far
  return union(far, buildBoundedAutomaton(shape, fractionDigits, exactDigits - fractionDigits))
}

/**
 * Builds the multiples within the bounds. They have few digits, so that they remain multiples after parsing.
 */
function buildBoundedMultiples(shape: NumberShape, multiples: readonly number[]): Automaton {
  const wanted = Math.max(...multiples.map((step) => scale(step).places))
  const places = shape.isInteger ? 0 : wanted
  const range = buildBoundedAutomaton(shape, places, Math.min(exactDigits - places, multipleDigits))
  return multiples.reduce((all, step) => intersect(all, buildMultiplesAutomaton(step, places)), range)
}

/** @param digits maximum number of digits before the decimal point */
function buildBoundedAutomaton({ min, max }: NumberShape, places: number, digits: number): Automaton {
  const limit = 10n ** BigInt(digits + places) - 1n
  return buildRangeAutomaton(
    bigMax(toLowestUnits(min, places), -limit),
    bigMin(toHighestUnits(max, places), limit),
    places,
  )
}

const countDigits = (value: number) =>
  Number.isFinite(value) ? String(BigInt(Math.trunc(Math.abs(value)))).length : 1

const bigMax = (a: bigint, b: bigint) => (a > b ? a : b)
const bigMin = (a: bigint, b: bigint) => (a < b ? a : b)

/** Builds the decimals from `low` to `high`. Both bounds are in units of the last decimal place. */
function buildRangeAutomaton(low: bigint, high: bigint, places: number): Automaton {
  const negative = low < 0n ? toDecimalPatterns(bigMax(1n, -high), -low, places) : []
  const positive = high >= 0n ? toDecimalPatterns(bigMax(0n, low), high, places) : []
  const all = [...negative.map((option) => `-(?:${option})`), ...positive]
  if (all.length === 0) return noText
  const range = compileFullMatch(all.join('|'))
  return places === 0 ? range : shortenFractions(range)
}

/** Builds regular expressions of the decimals from `low` to `high`, with all decimal places written. */
function toDecimalPatterns(low: bigint, high: bigint, places: number): readonly string[] {
  if (low > high) return []
  if (places === 0) return toIntegerPatterns(low, high)
  const unit = 10n ** BigInt(places)
  const [first, last] = [low / unit, high / unit]
  const fraction = (from: bigint, to: bigint) =>
    `\\.(?:${toSameLengthPattern(pad(from, places), pad(to, places))})`
  if (first === last) return [`${first}${fraction(low % unit, high % unit)}`]
  // From `from` to `to`, any fraction can follow the integer part.
  const from = low % unit === 0n ? first : first + 1n
  const to = high % unit === unit - 1n ? last : last - 1n
  return [
    ...(from > first ? [`${first}${fraction(low % unit, unit - 1n)}`] : []),
    ...toIntegerPatterns(from, to).map((option) => `(?:${option})\\.[0-9]{${places}}`),
    ...(to < last ? [`${last}${fraction(0n, high % unit)}`] : []),
  ]
}

const pad = (value: bigint, places: number) => String(value).padStart(places, '0')

/** Builds regular expressions of the integers from `low` (0 or more) to `high`, one per number of digits. */
function toIntegerPatterns(low: bigint, high: bigint): readonly string[] {
  const options: string[] = []
  for (let from = low; from <= high; ) {
    const to = bigMin(high, 10n ** BigInt(String(from).length) - 1n)
    options.push(toSameLengthPattern(String(from), String(to)))
    from = to + 1n
  }
  return options
}

/** Builds a regular expression of the digit strings from `from` to `to`. Both have the same length. */
function toSameLengthPattern(from: string, to: string): string {
  const rest = from.length - 1
  if (rest < 0) return ''
  const [a, b] = [Number(from[0]), Number(to[0])]
  const [fromRest, toRest] = [from.slice(1), to.slice(1)]
  if (a === b) return `${a}(?:${toSameLengthPattern(fromRest, toRest)})`
  const isLowest = /^0*$/.test(fromRest)
  const isHighest = /^9*$/.test(toRest)
  const [low, high] = [isLowest ? a : a + 1, isHighest ? b : b - 1]
  return [
    isLowest ? undefined : `${a}(?:${toSameLengthPattern(fromRest, '9'.repeat(rest))})`,
    low <= high ? `[${low}-${high}][0-9]{${rest}}` : undefined,
    isHighest ? undefined : `${b}(?:${toSameLengthPattern('0'.repeat(rest), toRest)})`,
  ]
    .filter((option) => option !== undefined)
    .join('|')
}

/** Also accepts numbers without their trailing zeros: `1.5` for `1.50`, `1` for `1.00`. */
function shortenFractions({ states }: Automaton): Automaton {
  const step = (state: DfaState | undefined, code: number) => follow(states, state, code)
  const endsInZeros = (state: DfaState | undefined): boolean => {
    let at = state
    while (at && !at.isAccepting) at = step(at, zero)
    return at !== undefined
  }
  const afterPoint = new Set(states.map((state) => step(state, point)))
  return {
    states: states.map((state) => ({
      ...state,
      // A decimal point needs a digit after it.
      isAccepting: !afterPoint.has(state) && (endsInZeros(state) || endsInZeros(step(state, point))),
    })),
  }
}
const [zero, point, minus] = [0x30, 0x2e, 0x2d]

const edgeTo = (code: number, decimals: number, rest: bigint): DfaEdge<readonly [number, bigint]> => ({
  low: code,
  high: code,
  next: [decimals, rest],
})

/** Builds the multiples of `step` with up to `places` decimal places. */
function buildMultiplesAutomaton(step: number, places: number): Automaton {
  const { digits, places: own } = toDecimal(step)
  // `places` is smaller than the decimal places of the step only for integers.
  const [factor, modulus] =
    own <= places ? [1n, digits * 10n ** BigInt(places - own)] : [10n ** BigInt(own - places), digits]
  const unit = (decimals: number) => 10n ** BigInt(places - Math.max(decimals, 0)) * factor
  const remainders = explore<readonly [decimals: number, rest: bigint]>(
    [-1, 0n],
    String,
    ([decimals, rest]) => {
      const digitEdges = Array.from({ length: 10 }, (_, digit) => {
        const next = (rest * 10n + BigInt(digit)) % modulus
        return edgeTo(zero + digit, decimals < 0 ? -1 : decimals + 1, next)
      })
      return {
        isAccepting: (rest * unit(decimals)) % modulus === 0n,
        edges: [
          ...(decimals < places ? digitEdges : []),
          ...(decimals < 0 ? [edgeTo(point, 0, rest), edgeTo(minus, -1, rest)] : []),
        ],
      }
    },
  )
  // Merges equivalent states. For step 1,000, only the last three digits matter.
  return minimize(remainders)
}
