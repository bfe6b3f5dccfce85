/** Values over time. */
import { useEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { formatCompact } from '../format/numbers.ts'
import { type ChartKind, readColors, toData, toOptions } from './chart/options.ts'
import { type ChartSeries, type ChartValues, textOf, toTimeText } from './chart/values.ts'

export type { ChartSeries }

export interface ChartProps extends ChartValues {
  readonly title: string
  /** @default 'line' */
  readonly kind?: ChartKind
  /** Text of a value of the vertical axis. @default `formatCompact` */
  readonly formatAxis?: (value: number) => string
}

/** In pixels. */
const height = 220

export function Chart({ title, times, series, kind = 'line', formatAxis = formatCompact }: ChartProps) {
  const container = useRef<HTMLDivElement>(null)
  const values = useRef<ChartValues>({ times, series })
  values.current = { times, series }
  const chart = useRef<uPlot>()
  const theme = useTheme()
  // What needs another chart. Other values of the same series do not, so that the pointer keeps its place.
  const shape = `${theme} ${kind} ${times.length > 1} ${series.map(({ name }) => name).join('\n')}`
  useEffect(() => {
    const target = container.current
    if (target === null) return undefined
    const width = target.clientWidth
    const read = (): ChartValues => values.current
    const options = toOptions({ kind, formatAxis, read, colors: readColors(target), width, height })
    const created = new uPlot(options, toData(values.current, kind), target)
    chart.current = created
    const observer = new ResizeObserver(() => created.setSize({ width: target.clientWidth, height }))
    observer.observe(target)
    return () => {
      chart.current = undefined
      observer.disconnect()
      created.destroy()
    }
  }, [shape, formatAxis])
  useEffect(() => chart.current?.setData(toData({ times, series }, kind)), [times, series, kind])
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
