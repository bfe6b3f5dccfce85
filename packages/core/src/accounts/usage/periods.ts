/** Days and months in UTC, as the ledger writes them: `2026-11-22`, `2026-11`. */
import type { NanoUsdLimit } from '../spending-limit.ts'

export const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)
export const monthOf = (at: number): string => new Date(at).toISOString().slice(0, 7)

/** Start of the period that contains the time, in milliseconds since 1970. */
export function startOfPeriod(period: NanoUsdLimit['period'], at: number): number {
  if (period === 'lifetime') return 0
  return Date.parse(period === 'day' ? dayOf(at) : monthOf(at))
}

/** Start of the next period. Undefined for a lifetime. */
export function nextPeriodStart(period: NanoUsdLimit['period'], at: number): Date | undefined {
  const date = new Date(startOfPeriod(period, at))
  if (period === 'lifetime') return undefined
  if (period === 'day') date.setUTCDate(date.getUTCDate() + 1)
  else date.setUTCMonth(date.getUTCMonth() + 1)
  return date
}
