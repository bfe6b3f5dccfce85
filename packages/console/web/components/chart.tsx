/** Values over time. */
import { useEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { formatCompact } from '../format/numbers.ts'
import { formatTime, formatUtcDay } from '../format/time.ts'

export interface ChartSeries {
  readonly name: string
  /** One value a time. `null` leaves a gap. */
  readonly values: readonly (number | null)[]
  /** The exact text of a value, by its index, such as an amount of money. @default a rounded count */
  readonly textAt?: (index: number) => string
  readonly tone?: 'danger'
}

export interface ChartProps {
  readonly title: string
  /** ISO strings in UTC, ascending. Intervals of a day are shown as days in UTC, others in the viewer's zone. */
  readonly times: readonly string[]
  /** At most six. */
  readonly series: readonly ChartSeries[]
  /** @default 'line' */
  readonly kind?: 'line' | 'bars' | 'stacked-bars'
  /** Text of a value of the vertical axis. @default `formatCompact` */
  readonly formatAxis?: (value: number) => string
}

const height = 220

export function Chart({ title, times, series, kind = 'line', formatAxis = formatCompact }: ChartProps) {
  const container = useRef<HTMLDivElement>(null)
  const theme = useTheme()
  // `theme` is a dependency because it changes the colors of the style sheet.
  useEffect(() => {
    const target = container.current
    if (target === null) return undefined
    const chart = new uPlot(
      toOptions({ series, kind, formatAxis, times, colors: readColors(target), width: target.clientWidth }),
      toData(times, series, kind),
      target,
    )
    const observer = new ResizeObserver(() => chart.setSize({ width: target.clientWidth, height }))
    observer.observe(target)
    return () => {
      observer.disconnect()
      chart.destroy()
    }
  }, [times, series, kind, formatAxis, theme])
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <div ref={container} class="chart-canvas" aria-hidden="true" />
      <ChartData title={title} times={times} series={series} />
    </figure>
  )
}

/** The same values as a table, for screen readers and for exact reading. */
const ChartData = ({ title, times, series }: Pick<ChartProps, 'title' | 'times' | 'series'>) => (
  <details class="chart-data">
    <summary>
      Show the values<span class="visually-hidden"> of {title}</span>
    </summary>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the table scrolls, so the keyboard must reach it. */}
    <section class="chart-data-scroll" tabIndex={0} aria-label={`Values of ${title}`}>
      <table>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {series.map(({ name }) => (
              <th scope="col" key={name}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {times.map((at, index) => (
            <tr key={at}>
              <th scope="row">{toTimeText(times, index)}</th>
              {series.map((one) => (
                <td key={one.name}>{textOf(one, index)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  </details>
)

const textOf = ({ values, textAt }: ChartSeries, index: number | null): string => {
  const value = index === null ? null : values[index]
  return value == null || index === null ? '–' : (textAt?.(index) ?? formatCompact(value))
}

const toData = (
  times: readonly string[],
  series: readonly ChartSeries[],
  kind: ChartProps['kind'],
): uPlot.AlignedData => [
  times.map((at) => new Date(at).getTime() / 1_000),
  ...(kind === 'stacked-bars'
    ? stackValues(series.map(({ values }) => values))
    : series.map(({ values }) => [...values])),
]

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

interface Drawing extends Required<Omit<ChartProps, 'title'>> {
  readonly colors: Colors
  readonly width: number
}

function toOptions({ series, kind, formatAxis, times, colors, width }: Drawing): uPlot.Options {
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
    padding: [8, 8, 0, 0],
    cursor: { points: { show: kind === 'line' }, y: false, drag: { x: false, y: false } },
    scales: {
      // Bars need half of an interval before the first and after the last one.
      ...(bars && { x: { range: (_chart, min, max) => widen(min, max, times.length) } }),
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
      { value: (_chart, _seconds, _series, index) => toTimeText(times, index) },
      ...series.map((one, position): uPlot.Series => {
        const color =
          one.tone === 'danger'
            ? colors.danger
            : (colors.series[position % colors.series.length] ?? colors.text)
        return {
          label: one.name,
          stroke: color,
          width: kind === 'line' ? 1.5 : 0,
          ...(bars && { paths: bars, fill: color }),
          points: { show: times.length === 1 },
          value: (_chart, _value, _series, index) => textOf(one, index),
        }
      }),
    ],
  }
}

/** Shows the last values in the legend while the pointer is elsewhere. */
const showLast = (chart: uPlot): void => {
  if (chart.cursor.idx == null) chart.setLegend({ idx: chart.data[0].length - 1 }, false)
}

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

const toTimeText = (times: readonly string[], index: number | null): string => {
  const at = index === null ? undefined : times[index]
  if (at === undefined) return '–'
  return isDaily(times) ? formatUtcDay(at) : formatTime(new Date(at))
}

/** Whether the times are days, which the server counts in UTC. */
const isDaily = ([first, second]: readonly string[]): boolean =>
  first !== undefined && second !== undefined && Date.parse(second) - Date.parse(first) >= dayMs

const dayMs = 86_400_000

interface Colors {
  readonly text: string
  readonly grid: string
  readonly danger: string
  readonly font: string
  readonly series: readonly string[]
}

function readColors(element: Element): Colors {
  const style = getComputedStyle(element)
  const value = (name: string): string => style.getPropertyValue(name).trim()
  return {
    text: value('--text-muted'),
    grid: value('--line'),
    danger: value('--danger-solid'),
    font: style.fontFamily,
    series: [1, 2, 3, 4, 5, 6].map((position) => value(`--chart-${position}`)),
  }
}

/** Changes with the system setting, since a canvas does not follow the style sheet. */
function useTheme(): boolean {
  const [query] = useState(() => matchMedia('(prefers-color-scheme: dark)'))
  const [isDark, setIsDark] = useState(query.matches)
  useEffect(() => {
    const update = (): void => setIsDark(query.matches)
    query.addEventListener('change', update)
    return () => query.removeEventListener('change', update)
  }, [query])
  return isDark
}
