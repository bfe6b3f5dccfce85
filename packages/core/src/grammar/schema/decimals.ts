/** Exact decimal arithmetic for bounds and multiples. */
export interface NumberBound {
  /** Infinity or -Infinity if there is no bound. */
  readonly value: number
  readonly isExclusive: boolean
}

/** Maximum number of decimal places in grammars and in `multipleOf`. */
export const fractionDigits = 10

/** Splits a finite number into an integer and a number of decimal places. */
export function toDecimal(value: number): { digits: bigint; places: number } {
  const [mantissa = '', exponent = '0'] = String(value).split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  const places = fraction.length - Number(exponent)
  const digits = BigInt(whole + fraction)
  return places >= 0 ? { digits, places } : { digits: digits * 10n ** BigInt(-places), places: 0 }
}

export function scale(step: number): { scaled: bigint | undefined; places: number } {
  const { digits, places } = toDecimal(step)
  return { scaled: places <= fractionDigits ? digits : undefined, places: Math.min(places, fractionDigits) }
}

/**
 * Returns the lowest allowed number, multiplied by 10^`places` and rounded up. Returns -10^40 if there is no
 * bound.
 */
export function toLowestUnits({ value, isExclusive }: NumberBound, places: number): bigint {
  if (!Number.isFinite(value)) return -(10n ** 40n)
  const { digits, places: own } = toDecimal(value)
  if (own <= places) {
    const exact = digits * 10n ** BigInt(places - own)
    return isExclusive ? exact + stepAt(value) : exact
  }
  const unit = 10n ** BigInt(own - places)
  return digits >= 0n ? (digits + unit - 1n) / unit : digits / unit
}

/**
 * Distance from an exclusive bound to the next number, multiplied by 10^`places`. Above 2^53, the distance is
 * more than 1, because adjacent integers can parse as the same double.
 */
const stepAt = (value: number) =>
  Number.isSafeInteger(Math.trunc(value))
    ? 1n
    : BigInt(2 ** Math.max(1, Math.ceil(Math.log2(Math.abs(value))) - 51))

export const toHighestUnits = ({ value, isExclusive }: NumberBound, places: number): bigint =>
  -toLowestUnits({ value: -value, isExclusive }, places)

export function isMultiple(value: number, step: number): boolean {
  const [a, b] = [toDecimal(value), toDecimal(step)]
  const places = Math.max(a.places, b.places)
  return (a.digits * 10n ** BigInt(places - a.places)) % (b.digits * 10n ** BigInt(places - b.places)) === 0n
}
