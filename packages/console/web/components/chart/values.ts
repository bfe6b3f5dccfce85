/** The values of a chart, and their texts. */
import { formatCompact } from '../../format/numbers.ts'
import { formatTime, formatUtcDay } from '../../format/time.ts'

export interface ChartSeries {
  readonly name: string
  /** One value a time. `null` leaves a gap. */
  readonly values: readonly (number | null)[]
  /** The exact text of a value, by its index, such as an amount of money. @default a rounded count */
  readonly textAt?: (index: number) => string
  readonly tone?: 'danger'
}

export interface ChartValues {
  /** ISO strings in UTC, ascending. Intervals of a day are shown as days in UTC, others in the viewer's zone. */
  readonly times: readonly string[]
  /** At most six. */
  readonly series: readonly ChartSeries[]
}

export const textOf = (series: ChartSeries | undefined, index: number | null): string => {
  const value = index === null ? null : series?.values[index]
  return value == null || index === null ? '–' : (series?.textAt?.(index) ?? formatCompact(value))
}

export const toTimeText = (times: readonly string[], index: number | null): string => {
  const at = index === null ? undefined : times[index]
  if (at === undefined) return '–'
  const date = new Date(at)
  // With the time of the day, however long ago.
  return isDaily(times) ? formatUtcDay(at) : formatTime(date, date)
}

/** Whether the times are days, which the server counts in UTC. */
export const isDaily = ([first, second]: readonly string[]): boolean =>
  first !== undefined && second !== undefined && Date.parse(second) - Date.parse(first) >= dayMs

export const dayMs = 86_400_000

/** Indices of values between gaps. A line alone would not show them. */
export const isolatedIndices = (values: readonly (number | null)[]): number[] =>
  values.flatMap((value, index) =>
    value != null && values[index - 1] == null && values[index + 1] == null ? [index] : [],
  )

/** Each value plus those of the series after it: the first one is drawn first, behind the others. */
export function stackValues(series: readonly (readonly (number | null)[])[]): (number | null)[][] {
  const sums: number[] = []
  return series
    .toReversed()
    .map((values) =>
      values.map((value, index) => {
        sums[index] = (sums[index] ?? 0) + (value ?? 0)
        return sums[index]
      }),
    )
    .toReversed()
}
