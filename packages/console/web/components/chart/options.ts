/** Options of uPlot. */
import uPlot from 'uplot'
import { formatUtcDay } from '../../format/time.ts'
import {
  type ChartValues,
  dayMs,
  isDaily,
  isolatedIndices,
  stackValues,
  textOf,
  toTimeText,
} from './values.ts'

export type ChartKind = 'line' | 'bars' | 'stacked-bars'

export const toData = ({ times, series }: ChartValues, kind: ChartKind): uPlot.AlignedData => [
  times.map((at) => new Date(at).getTime() / 1_000),
  ...(kind === 'stacked-bars'
    ? stackValues(series.map(({ values }) => values))
    : series.map(({ values }) => [...values])),
]

interface Drawing {
  readonly kind: ChartKind
  /** In pixels. */
  readonly height: number
  readonly formatAxis: (value: number) => string
  /** The values that the chart shows now. */
  readonly read: () => ChartValues
  readonly colors: Colors
  readonly width: number
}

export function toOptions({ kind, formatAxis, read, colors, width, height }: Drawing): uPlot.Options {
  const { times, series } = read()
  const font = `12px ${colors.font}`
  const axis: uPlot.Axis = {
    stroke: colors.text,
    font,
    grid: { stroke: colors.grid, width: 1 },
    ticks: { show: false },
  }
  const bars = kind === 'line' ? undefined : uPlot.paths.bars?.({ size: [0.7, 40] })
  return {
    width: Math.max(width, 200),
    height,
    padding: [8, lastLabelWidth / 2, 0, 0],
    cursor: { points: { show: kind === 'line' }, y: false, drag: { x: false, y: false } },
    scales: {
      // Bars need half of an interval before the first and after the last one.
      ...(bars && { x: { range: (_chart, min, max) => widen(min, max, read().times.length) } }),
      y: { range: (_chart, _min, max) => [0, max > 0 ? max * 1.1 : 1] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        space: 72,
        size: 28,
        values: isDaily(times) ? toDayLabels : toTimeLabels,
      },
      { ...axis, size: 64, values: (_chart, splits) => splits.map(formatAxis) },
    ],
    ...(isDaily(times) && {
      tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1_000), 'Etc/UTC'),
    }),
    legend: { live: true },
    hooks: { ready: [showLast], setCursor: [showLast] },
    series: [
      { value: (_chart, _seconds, _series, index) => toTimeText(read().times, index) },
      ...series.map(({ name, tone }, position): uPlot.Series => {
        const color =
          tone === 'danger' ? colors.danger : (colors.series[position % colors.series.length] ?? colors.text)
        return {
          label: name,
          stroke: color,
          width: kind === 'line' ? 1.5 : 0,
          ...(bars && { paths: bars, fill: color }),
          points: {
            show: kind === 'line',
            size: 5,
            filter: () => isolatedIndices(read().series[position]?.values ?? []),
          },
          value: (_chart, _value, _series, index) => textOf(read().series[position], index),
        }
      }),
    ],
  }
}

/** Shows the last values in the legend while the pointer is elsewhere. */
const showLast = (chart: uPlot): void => {
  if (chart.cursor.idx == null) chart.setLegend({ idx: chart.data[0].length - 1 }, false)
}

/** In pixels. The last label is centered at the right edge of the values, such as `12:00 AM`. */
const lastLabelWidth = 64

const widen = (min: number, max: number, count: number): uPlot.Range.MinMax => {
  const half = count > 1 ? (max - min) / (count - 1) / 2 : 43_200
  return [min - half, max + half]
}

const dayLabel = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' })
const timeLabel = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })

/** @param step seconds between two labels */
const toTimeLabels: uPlot.Axis.Values = (_chart, splits, _axis, _space, step) =>
  splits.map((seconds) => (step >= dayMs / 1_000 ? dayLabel : timeLabel).format(new Date(seconds * 1_000)))

const toDayLabels: uPlot.Axis.Values = (_chart, splits) =>
  splits.map((seconds) => formatUtcDay(new Date(seconds * 1_000).toISOString()))

interface Colors {
  readonly text: string
  readonly grid: string
  readonly font: string
  readonly danger: string
  readonly series: readonly string[]
}

export function readColors(element: Element): Colors {
  const style = getComputedStyle(element)
  const value = (name: string): string => style.getPropertyValue(name).trim()
  return {
    text: value('--text-muted'),
    grid: value('--line'),
    font: style.fontFamily,
    danger: value('--danger-solid'),
    series: [1, 2, 3, 4, 5, 6].map((position) => value(`--chart-${position}`)),
  }
}
