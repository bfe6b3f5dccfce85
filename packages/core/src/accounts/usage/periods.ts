/** Days and months in UTC, as the ledger writes them: `2026-11-22`, `2026-11`. */
import type { SpendingLimit } from '../auth/caller.ts'

export const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10)
export const monthOf = (at: number): string => new Date(at).toISOString().slice(0, 7)

/** When the period began that this is in, in milliseconds since 1970. */
export function startOfPeriod(per: SpendingLimit['per'], at: number): number {
  if (per === 'lifetime') return 0
  return Date.parse(per === 'day' ? dayOf(at) : monthOf(at))
}

/** When the next one begins; nothing for a lifetime. */
export function nextPeriodStart(per: SpendingLimit['per'], at: number): Date | undefined {
  const date = new Date(startOfPeriod(per, at))
  if (per === 'lifetime') return undefined
  if (per === 'day') date.setUTCDate(date.getUTCDate() + 1)
  else date.setUTCMonth(date.getUTCMonth() + 1)
  return date
}
