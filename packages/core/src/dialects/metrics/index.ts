/** `GET /metrics` for Prometheus. */
import { LlmError } from '../../errors.ts'
import { internals, type Llm } from '../../llm.ts'
import { checkKeys } from '../../options/check.ts'
import { checkMount } from '../check-mount.ts'
import type { Dialect } from '../dialect.ts'
import { createOperatorDialect } from '../operator-route.ts'
import { createDialectTable, type DialectTable } from '../table.ts'

/** What the route uses of a `Registry` of `prom-client`, whose types an app without metrics need not have. */
interface MetricRegistry {
  readonly contentType: string
  metrics(): Promise<string>
}

/** Options of the route with the metrics. */
export interface MetricsRouteOptions {
  /**
   * Registry to serve. The app itself adds the metrics of an `Llm` to it, with `registerMetrics()`.
   *
   * @default a new registry with the metrics of this `Llm` only
   */
  readonly registry?: MetricRegistry | undefined
}

/**
 * Returns `GET /metrics`, for callers with the scope `admin:read`, and with `auth: 'anonymous'` for direct calls from this
 * machine. Without `registry`, the metrics count from the moment when the routes are mounted. Throws a `TypeError` for an
 * invalid option.
 */
export function metricsRoutes(options: MetricsRouteOptions = {}): DialectTable {
  checkKeys('', options, ['registry'])
  const { registry } = options
  if (registry !== undefined && typeof registry?.metrics !== 'function')
    throw new TypeError('Expected `registry` to be a Registry of prom-client')
  const registries = new WeakMap<Llm, Promise<MetricRegistry>>()
  const registryOf = (llm: Llm): Promise<MetricRegistry> => {
    const found = registries.get(llm) ?? (registry ? Promise.resolve(registry) : openRegistry(llm))
    // Each scrape reports the error.
    found.catch(() => {})
    registries.set(llm, found)
    return found
  }
  return {
    ...createDialectTable([createDialect(registryOf)]),
    checkMount: (llm, authenticate) => {
      checkMount(llm, authenticate)
      void registryOf(llm)
    },
  }
}

/** Loads `prom-client` on use, since an app without metrics need not have it. */
async function openRegistry(llm: Llm): Promise<MetricRegistry> {
  const client = await importClient()
  const { collectMetrics } = await import('../../metrics/collect-metrics.ts')
  const registry = new client.Registry()
  llm[internals].onClose(collectMetrics(llm, registry, client))
  return registry
}

async function importClient() {
  try {
    return await import('prom-client')
  } catch (cause) {
    throw new LlmError(
      'internal',
      'Metrics need the package prom-client. Install it in the app: npm install prom-client',
      { setup: true },
      { cause },
    )
  }
}

const createDialect = (registryOf: (llm: Llm) => Promise<MetricRegistry>): Dialect =>
  createOperatorDialect('metrics', '/metrics', async (llm) => {
    const registry = await registryOf(llm)
    return { status: 200, headers: { 'content-type': registry.contentType }, body: await registry.metrics() }
  })
