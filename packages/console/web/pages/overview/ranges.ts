/** The ranges of time that the page shows. */

export type Interval = 'hour' | 'day'

export interface Range {
  readonly id: string
  readonly name: string
  readonly interval: Interval
  /** Coarser for many groups, since each group has its rows. */
  readonly groupInterval: Interval
  readonly hours: number
}

export const ranges: readonly [Range, ...Range[]] = [
  { id: '24h', name: 'Last 24 hours', interval: 'hour', groupInterval: 'hour', hours: 24 },
  { id: '7d', name: 'Last 7 days', interval: 'hour', groupInterval: 'day', hours: 7 * 24 },
  { id: '30d', name: 'Last 30 days', interval: 'day', groupInterval: 'day', hours: 30 * 24 },
]

/** @param id of the page's address. Unknown ones mean the first range */
export const rangeOf = (id: string): Range => ranges.find((range) => range.id === id) ?? ranges[0]

const hourMs = 3_600_000
const intervalMs = { hour: hourMs, day: 24 * hourMs } as const

/**
 * The beginnings of the intervals of a range, in UTC. The last one contains `now`.
 *
 * @returns ISO strings, ascending
 */
export function intervalStarts({ hours }: Range, interval: Interval, now: Date): readonly string[] {
  const stepMs = intervalMs[interval]
  const last = Math.floor(now.getTime() / stepMs) * stepMs
  const count = Math.ceil((hours * hourMs) / stepMs)
  return Array.from({ length: count }, (_, index) =>
    new Date(last - (count - 1 - index) * stepMs).toISOString(),
  )
}

/** The first and the last day of a range in UTC, such as `2026-03-01`. */
export function daysOf({ hours }: Range, now: Date): { readonly from: string; readonly to: string } {
  const from = new Date(now.getTime() - (hours - 1) * hourMs)
  return { from: from.toISOString().slice(0, 10), to: now.toISOString().slice(0, 10) }
}
