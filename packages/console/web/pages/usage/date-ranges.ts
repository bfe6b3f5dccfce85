/** Ranges of days in UTC, as usage is counted. */

export interface DayRange {
  /** Such as `2026-03-01`. Empty for no limit. */
  readonly from: string
  /** Inclusive. */
  readonly to: string
}

export const rangeNames = {
  '30d': 'Last 30 days',
  month: 'This month',
  'last-month': 'Last month',
  year: 'Last 365 days',
  custom: 'Other days',
} as const

export type RangeId = keyof typeof rangeNames

/** @param id of the page's address. Unknown ones mean the first range */
export const toRangeId = (id: string): RangeId => (Object.hasOwn(rangeNames, id) ? (id as RangeId) : '30d')

/** @param custom the days that the viewer has chosen */
export function daysOfRange(id: RangeId, custom: DayRange, now: Date): DayRange {
  const today = toDay(now)
  switch (id) {
    case '30d':
      return { from: daysBefore(now, 29), to: today }
    case 'year':
      return { from: daysBefore(now, 364), to: today }
    case 'month':
      return { from: `${today.slice(0, 7)}-01`, to: today }
    case 'last-month': {
      // Day 0 is the last one of the month before.
      const last = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 0))
      return { from: `${toDay(last).slice(0, 7)}-01`, to: toDay(last) }
    }
    case 'custom':
      return custom
  }
}

const dayMs = 86_400_000
const toDay = (at: Date): string => at.toISOString().slice(0, 10)
const daysBefore = (now: Date, days: number): string => toDay(new Date(now.getTime() - days * dayMs))

/** More bars than this have no room. */
const maxDays = 400

/** All days of a report, with those that have no row. Reports beyond a year have months, which stay as they are. */
export function fillReport<Row extends { readonly group: string }>(
  rows: readonly Row[],
  { from, to }: DayRange,
): readonly { readonly day: string; readonly row: Row | undefined }[] {
  const sorted = [...rows].sort((a, b) => a.group.localeCompare(b.group))
  const first = Date.parse(from || sorted[0]?.group || '')
  const last = Date.parse(to || sorted.at(-1)?.group || '')
  const count = (last - first) / dayMs + 1
  const hasMonths = sorted.some(({ group }) => group.length < 10)
  if (hasMonths || !(count <= maxDays)) return sorted.map((row) => ({ day: row.group, row }))
  const byDay = new Map(sorted.map((row) => [row.group, row]))
  return Array.from({ length: Math.max(0, count) }, (_, index) => {
    const day = toDay(new Date(first + index * dayMs))
    return { day, row: byDay.get(day) }
  })
}
