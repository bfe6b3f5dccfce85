/**
 * Spending limits. Settings and reports use dollars, and the ledger uses nano-dollars (billionths of a
 * dollar).
 */

/** How much the calls of a caller may cost in a period, in dollars. */
export interface SpendingLimit {
  /**
   * Dollars from 0 to 9,007,199.254740991, with at most 9 decimal places: a number, or a decimal string such
   * as `'0.000000001'`. A stored limit is returned as a number if that is exact, else as a string.
   */
  readonly usd: number | string
  /** Days and months begin at midnight in UTC. */
  readonly period: 'day' | 'month' | 'lifetime'
}

/** A spending limit in billionths of a dollar, the unit of the ledger and of stored keys. */
export interface NanoUsdLimit {
  readonly nanoUsd: number
  readonly period: SpendingLimit['period']
}

export const toNanoUsdLimit = ({ usd, period }: SpendingLimit): NanoUsdLimit => {
  const nanoUsd = parseUsd(usd)
  if (nanoUsd === undefined)
    throw new TypeError(`Expected \`usd\` to be an amount of dollars, got ${String(usd)}`)
  return { nanoUsd, period }
}

export const toSpendingLimit = ({ nanoUsd, period }: NanoUsdLimit): SpendingLimit => ({
  usd: toUsd(nanoUsd),
  period,
})

/** Such as `$5 per month`. */
export const describeSpendingLimit = ({ usd, period }: SpendingLimit): string =>
  `$${toDecimal(usd)}${period === 'lifetime' ? ' in total' : ` per ${period}`}`

/**
 * Converts dollars to nano-dollars without rounding. Undefined for a value that `SpendingLimit.usd` does not
 * allow.
 */
export function parseUsd(usd: unknown): number | undefined {
  const [, whole, fraction = ''] = /^(\d{1,7})(?:\.(\d{1,9}))?$/.exec(toDecimal(usd)) ?? []
  const nanoUsd = Number(whole) * nanoPerUsd + Number(fraction.padEnd(9, '0'))
  return Number.isSafeInteger(nanoUsd) ? nanoUsd : undefined
}

/**
 * Converts nano-dollars to dollars: a number if that is exact, else a decimal string. From 8,388,608 dollars
 * on, a double cannot represent every nano-dollar.
 */
export function toUsd(nanoUsd: number): number | string {
  const usd = nanoUsd / nanoPerUsd
  if (parseUsd(usd) === nanoUsd) return usd
  const rest = nanoUsd % nanoPerUsd
  return `${(nanoUsd - rest) / nanoPerUsd}.${String(rest).padStart(9, '0')}`
}

const nanoPerUsd = 1e9

/** Formats a number in decimal notation. `String` alone would use an exponent below a millionth. */
function toDecimal(usd: unknown): string {
  if (typeof usd !== 'number') return typeof usd === 'string' ? usd : ''
  const text = usd < 1e-6 ? usd.toFixed(9) : String(usd)
  return Number(text) === usd ? text : ''
}
