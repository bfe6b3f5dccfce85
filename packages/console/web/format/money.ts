/** Exact amounts of money. */
import { formatCompact } from './numbers.ts'

const nanosPerDollar = 1_000_000_000n

/**
 * Formats billionths of a dollar without rounding: at least two decimal places, at most nine.
 * @example formatUsd('1500000') // '$0.0015'
 */
export function formatUsd(nanoUsd: bigint | string): string {
  const nanos = BigInt(nanoUsd)
  const [sign, amount] = nanos < 0n ? ['−', -nanos] : ['', nanos]
  const decimals = `${amount % nanosPerDollar}`.padStart(9, '0').replace(/0{1,7}$/, '')
  return `${sign}$${(amount / nanosPerDollar).toLocaleString('en-US')}.${decimals}`
}

/** Dollars for the axis and the bars of a chart, where pixels are coarser than the rounding. */
export const toUsd = (nanoUsd: bigint | string): number => Number(nanoUsd) / 1e9

/** Dollars for the axis of a chart, with two digits or so. */
export const formatCompactUsd = (usd: number): string =>
  `$${usd === 0 || usd >= 1 ? formatCompact(usd) : Number(usd.toPrecision(2))}`

/** Converts dollars of a form, such as `12.50`. Undefined if the text is no amount. */
export function parseUsd(text: string): bigint | undefined {
  const [, dollars, decimals = ''] = /^\$?(\d{1,7})(?:\.(\d{1,9}))?$/.exec(text.trim()) ?? []
  return dollars === undefined
    ? undefined
    : BigInt(dollars) * nanosPerDollar + BigInt(decimals.padEnd(9, '0'))
}

/** Part of a whole, from 0 to 1. A whole of nothing is used up. */
export function fraction(part: bigint | string, whole: bigint | string): number {
  const [of, all] = [BigInt(part), BigInt(whole)]
  if (of >= all) return 1
  return Number((of * 10_000n) / all) / 10_000
}
