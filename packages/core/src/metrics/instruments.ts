/** Creates the metrics of a list of definitions in a registry of `prom-client`. */
import type { Counter, Gauge, Histogram, Registry } from 'prom-client'
import { type MetricDefinition, type MetricName, metrics } from './definitions.ts'

type Labels<Name extends MetricName> = Readonly<
  Record<(typeof metrics)[Name]['labels'][number], string | number>
>
/** The values of a gauge, each with its labels. */
export type Values<Name extends MetricName> = readonly (readonly [labels: Labels<Name>, value: number])[]

type NamesOf<Type extends MetricDefinition['type']> = {
  [Name in MetricName]: (typeof metrics)[Name]['type'] extends Type ? Name : never
}[MetricName]

/**
 * The classes of `prom-client`. They are passed, and not imported, because a bundler would look for the package in apps
 * without metrics.
 */
export type PromClient = Pick<typeof import('prom-client'), 'Counter' | 'Gauge' | 'Histogram'>

/** The metrics of one `Llm`, with the methods of their types. */
export class Instruments {
  readonly #registry: Registry
  readonly #client: PromClient
  readonly #counters = new Map<string, Counter>()
  readonly #gauges = new Map<string, Gauge>()
  readonly #histograms = new Map<string, Histogram>()

  /** Throws an `Error` if the registry has metrics of these names. */
  constructor(registry: Registry, client: PromClient) {
    this.#client = client
    const names = Object.keys(metrics) as MetricName[]
    if (names.some((name) => registry.getSingleMetric(name)))
      throw new Error(
        'This registry already has the metrics of an Llm. Register a further Llm in a separate registry, and serve it on another path.',
      )
    this.#registry = registry
    for (const name of names) this.#create(name, metrics[name])
  }

  /** @param value may be 0. A series that begins with 0 shows its first increase, too */
  count<Name extends NamesOf<'counter'>>(name: Name, labels: Labels<Name>, value = 1): void {
    this.#counters.get(name)?.inc(labels, value)
  }

  observe<Name extends NamesOf<'histogram'>>(name: Name, labels: Labels<Name>, value: number): void {
    this.#histograms.get(name)?.observe(labels, Math.max(0, value))
  }

  /** @param read returns all values of the gauge. It runs at each scrape */
  gauge<Name extends NamesOf<'gauge'>>(
    name: Name,
    read: () => Values<NoInfer<Name>> | Promise<Values<NoInfer<Name>>>,
  ): void {
    const gauge = this.#gauges.get(name) as Gauge
    const collect = async (): Promise<void> => {
      const values = await read()
      gauge.reset()
      for (const [labels, value] of values) gauge.set(labels, value)
    }
    Object.assign(gauge, { collect })
  }

  /** @param read returns all values of a counter that something else counts. It runs at each scrape */
  total<Name extends NamesOf<'counter'>>(name: Name, read: () => Values<NoInfer<Name>>): void {
    const counter = this.#counters.get(name) as Counter
    const collect = (): void => {
      counter.reset()
      for (const [labels, value] of read()) counter.inc(labels, value)
    }
    Object.assign(counter, { collect })
  }

  remove(): void {
    for (const name of Object.keys(metrics)) this.#registry.removeSingleMetric(name)
  }

  #create(name: string, { type, help, labels: labelNames, buckets }: MetricDefinition): void {
    const { Counter, Gauge, Histogram } = this.#client
    const options = { name, help, labelNames: [...labelNames], registers: [this.#registry] }
    if (type === 'counter') this.#counters.set(name, new Counter(options))
    else if (type === 'gauge') this.#gauges.set(name, new Gauge(options))
    else this.#histograms.set(name, new Histogram({ ...options, ...(buckets && { buckets: [...buckets] }) }))
  }
}
