/** The charts of the page: all calls, or by model or key. */
import { useMemo } from 'preact/hooks'
import { Chart, type ChartProps, type ChartSeries } from '../../components/chart.tsx'
import { type Measure, type RowMeasure, rowSeriesOf, seriesOf, splitGroups } from './chart-series.ts'
import * as measures from './measures.ts'
import type { Traffic } from './traffic.ts'

type ChartData = Pick<ChartProps, 'title' | 'kind' | 'formatAxis'> & {
  readonly series: readonly ChartSeries[]
}

export interface TrafficChartsProps {
  readonly traffic: Traffic
  readonly isGrouped: boolean
}

export function TrafficCharts({ traffic, isGrouped }: TrafficChartsProps) {
  const charts = useMemo(
    () => (isGrouped ? chartsOfGroups(traffic) : chartsOfAll(traffic)),
    [traffic, isGrouped],
  )
  return (
    <div class="charts">
      {charts.map((chart) => (
        <Chart key={chart.title} {...chart} times={traffic.times} />
      ))}
    </div>
  )
}

function chartsOfAll(traffic: Traffic): readonly ChartData[] {
  const sums = (name: string, measure: Measure): ChartSeries => seriesOf(traffic, name, measure)
  const latency = (name: 'firstTokenMs' | 'durationMs'): readonly ChartSeries[] => [
    rowSeriesOf(traffic, 'Median', measures.latency(name, 'p50')),
    rowSeriesOf(traffic, '95th percentile', measures.latency(name, 'p95')),
  ]
  return [
    {
      ...{ title: 'Calls', kind: 'stacked-bars', formatAxis: measures.axisOf.count },
      series: [
        sums('Successful', measures.successes),
        { ...sums('Errors', measures.errors), tone: 'danger' },
      ],
    },
    {
      ...{ title: 'Cost', kind: 'bars', formatAxis: measures.axisOf.money },
      series: [sums('Cost', measures.cost)],
    },
    {
      ...{ title: 'Tokens', kind: 'stacked-bars', formatAxis: measures.axisOf.count },
      series: [
        sums('Input, evaluated', measures.evaluatedTokens),
        sums('Input, from the cache', measures.cachedTokens),
        sums('Output', measures.outputTokens),
      ],
    },
    {
      ...{ title: 'Input tokens from the cache', formatAxis: measures.axisOf.percent },
      series: [sums('From the cache', measures.cacheHits)],
    },
    {
      ...{ title: 'Time to first token', formatAxis: measures.axisOf.duration },
      series: latency('firstTokenMs'),
    },
    { ...{ title: 'Duration', formatAxis: measures.axisOf.duration }, series: latency('durationMs') },
  ]
}

function chartsOfGroups(traffic: Traffic): readonly ChartData[] {
  const { groups, others } = splitGroups(traffic)
  const sums = (measure: Measure): readonly ChartSeries[] =>
    [...groups, ...(others ? [others] : [])].map((group) => seriesOf(group.traffic, group.name, measure))
  // Percentiles of the others together are unknown.
  const rows = (measure: RowMeasure): readonly ChartSeries[] =>
    groups.map((group) => rowSeriesOf(group.traffic, group.name, measure))
  const bars = (title: string, measure: Measure, formatAxis: (value: number) => string): ChartData => ({
    ...{ title, kind: 'stacked-bars', formatAxis },
    series: sums(measure),
  })
  const { count, money, percent, duration } = measures.axisOf
  return [
    bars('Calls', measures.calls, count),
    bars('Cost', measures.cost, money),
    bars('Tokens', measures.tokens, count),
    bars('Errors', measures.errors, count),
    { title: 'Input tokens from the cache', formatAxis: percent, series: sums(measures.cacheHits) },
    {
      ...{ title: 'Time to first token, 95th percentile', formatAxis: duration },
      series: rows(measures.latency('firstTokenMs', 'p95')),
    },
    {
      ...{ title: 'Duration, 95th percentile', formatAxis: duration },
      series: rows(measures.latency('durationMs', 'p95')),
    },
  ]
}
