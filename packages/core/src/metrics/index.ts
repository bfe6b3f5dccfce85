/** The entry point `@modelmount/core/metrics`: metrics for Prometheus. It needs the package `prom-client`. */

export { type MetricDefinition, type MetricName, metrics } from './definitions.ts'
export { registerMetrics } from './register-metrics.ts'
