/** Counts and sizes. */

const exact = new Intl.NumberFormat()
const compact = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 })
const percent = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 })

/** All digits, grouped. */
export const formatCount = (value: number): string => exact.format(value)

/** Such as `1 call`. */
export const formatCalls = (count: number): string =>
  `${formatCount(count)} ${count === 1 ? 'call' : 'calls'}`

/** Three digits or so: `12.3K`. */
export const formatCompact = (value: number): string => compact.format(value)

/** @param part from 0 to 1 */
export const formatPercent = (part: number): string => percent.format(part)

/** Bytes in powers of 1,000, as `ollama ls` prints them. */
export function formatBytes(bytes: number): string {
  const power = Math.min(sizeUnits.length - 1, bytes < 1 ? 0 : Math.floor(Math.log10(bytes) / 3))
  const value = bytes / 1_000 ** power
  return `${value < 10 && power > 0 ? value.toFixed(1) : Math.round(value)} ${sizeUnits[power]}`
}

const sizeUnits = ['B', 'kB', 'MB', 'GB', 'TB', 'PB']
