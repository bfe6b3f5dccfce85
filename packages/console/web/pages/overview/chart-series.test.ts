import { expect, test } from 'vitest'
import { rowSeriesOf, seriesOf, splitGroups } from './chart-series.ts'
import type { Traffic, TrafficRow } from './traffic.ts'

const times = ['2026-03-01T10:00:00.000Z', '2026-03-01T11:00:00.000Z', '2026-03-01T12:00:00.000Z']
const row = (at: string, more: Partial<TrafficRow> = {}): TrafficRow => ({
  at,
  calls: 1,
  errors: 0,
  inputTokens: 10,
  cachedInputTokens: 4,
  outputTokens: 3,
  nanoUsd: '1500000',
  firstTokenMs: { p50: 20, p95: 80 },
  durationMs: null,
  ...more,
})
const trafficOf = (rows: readonly TrafficRow[]): Traffic => ({ by: undefined, interval: 'hour', times, rows })

test('Intervals without calls count as zero', () => {
  const traffic = trafficOf([row('2026-03-01T10:00:00Z'), row('2026-03-01T12:00:00.000Z', { calls: 3 })])
  expect(seriesOf(traffic, 'Requests', { value: ({ calls }) => calls }).values).toEqual([1, 0, 3])
})

test('Rows of one interval are added up, and money stays exact', () => {
  const traffic = trafficOf([row('2026-03-01T10:00:00Z'), row('2026-03-01T10:00:00Z', { nanoUsd: '1' })])
  const series = seriesOf(traffic, 'Cost', {
    value: ({ nanoUsd }) => Number(nanoUsd),
    text: ({ nanoUsd }) => `${nanoUsd}`,
  })
  expect(series.textAt?.(0)).toBe('1500001')
  expect(series.textAt?.(1)).toBe('0')
})

test('Percentiles of intervals without calls are gaps', () => {
  const series = rowSeriesOf(trafficOf([row('2026-03-01T11:00:00Z')]), 'p95', {
    value: ({ firstTokenMs }) => firstTokenMs?.p95,
    text: ({ firstTokenMs }) => `${firstTokenMs?.p95} ms`,
  })
  expect(series.values).toEqual([null, 80, null])
  expect(series.textAt?.(1)).toBe('80 ms')
})

test('Six groups have a series each, and of seven the last two share one', () => {
  const groupsOf = (count: number) =>
    splitGroups(
      trafficOf(
        Array.from({ length: count }, (_, index) => row(times[0] ?? '', { group: `model-${index}` })),
      ),
    )
  expect(groupsOf(6).groups).toHaveLength(6)
  expect(groupsOf(6).others).toBeUndefined()
  expect(groupsOf(7).groups).toHaveLength(5)
  expect(groupsOf(7).others?.name).toBe('2 others')
  expect(groupsOf(7).others?.traffic.rows).toHaveLength(2)
})
