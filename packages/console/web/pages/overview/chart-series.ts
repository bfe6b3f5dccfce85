/** Values of the charts, one for each interval. */
import type { ChartSeries } from '../../components/chart.tsx'
import { groupRows } from './group-rows.ts'
import type { Traffic, TrafficRow } from './traffic.ts'
import { sumGroups, sumTraffic, type TrafficSums } from './traffic-sums.ts'

/** A series of the chart, and the text of its values. */
export interface Measure {
  /** `undefined` leaves a gap. */
  readonly value: (sums: TrafficSums) => number | undefined
  readonly text?: (sums: TrafficSums) => string
}

/** A value that rows have and sums have not, such as a percentile. */
export interface RowMeasure {
  readonly value: (row: TrafficRow) => number | undefined
  readonly text: (row: TrafficRow) => string
}

/** Charts have six colors. */
const maxSeries = 6

/** One series of all rows. */
export function seriesOf({ times, rows }: Traffic, name: string, { value, text }: Measure): ChartSeries {
  const byTime = groupRows(rows, timeOf)
  const sums = times.map((at) => sumTraffic(byTime.get(timeKey(at)) ?? []))
  return {
    name,
    values: sums.map((one) => value(one) ?? null),
    ...(text && { textAt: (index: number) => text(sums[index] ?? sumTraffic([])) }),
  }
}

/** One series of a value that cannot be added up. Times without calls are gaps. */
export function rowSeriesOf(
  { times, rows }: Traffic,
  name: string,
  { value, text }: RowMeasure,
): ChartSeries {
  const byTime = new Map(rows.map((row) => [timeOf(row), row]))
  const found = times.map((at) => byTime.get(timeKey(at)))
  return {
    name,
    values: found.map((row) => (row && value(row)) ?? null),
    textAt: (index) => {
      const row = found[index]
      return row === undefined ? '–' : text(row)
    },
  }
}

export interface GroupRows {
  readonly name: string
  readonly traffic: Traffic
}

/** The rows of the groups with most calls, and those of all others together. */
export function splitGroups(traffic: Traffic): {
  readonly groups: readonly GroupRows[]
  readonly others?: GroupRows
} {
  const sorted = sumGroups(traffic)
  const shown = sorted.length <= maxSeries ? sorted : sorted.slice(0, maxSeries - 1)
  const byGroup = groupRows(traffic.rows, ({ group = '' }) => group)
  const groups = shown.map(({ id, name }) => ({ name, traffic: { ...traffic, rows: byGroup.get(id) ?? [] } }))
  if (shown.length === sorted.length) return { groups }
  const ids = new Set(shown.map(({ id }) => id))
  const rows = traffic.rows.filter(({ group = '' }) => !ids.has(group))
  return { groups, others: { name: `${sorted.length - shown.length} others`, traffic: { ...traffic, rows } } }
}

const timeOf = ({ at }: TrafficRow): number => timeKey(at)

/** Servers may leave the milliseconds out. */
const timeKey = (at: string): number => new Date(at).getTime()
