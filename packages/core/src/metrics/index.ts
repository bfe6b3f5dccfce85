/** The entry point `@modelmount/core/metrics`: metrics for Prometheus. It needs the package `prom-client`. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import type { Llm } from '../llm.ts'
import { collectMetrics } from './collect-metrics.ts'

export { type MetricDefinition, type MetricName, metrics } from './definitions.ts'

/**
 * Adds the metrics of an `Llm` to a registry of `prom-client`, and returns a function that removes them. They count from
 * now on. Throws an `Error` if the registry has the metrics of another `Llm`.
 *
 * @param registry the registry of the app, such as `register` of `prom-client`
 */
export const registerMetrics = (llm: Llm, registry: Registry): (() => void) =>
  collectMetrics(llm, registry, { Counter, Gauge, Histogram })
