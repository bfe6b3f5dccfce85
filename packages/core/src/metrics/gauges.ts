/** Gauges, which are read at each scrape. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { LoadedModel } from '../engine/engine.ts'
import { internals, type Llm } from '../llm.ts'
import { withTimeout } from '../util/with-timeout.ts'
import type { ActiveCalls } from './active-calls.ts'
import type { Instruments, Values } from './instruments.ts'
import type { ModelLabels } from './model-labels.ts'
import { registerReplicas } from './replicas.ts'

interface GaugeParts {
  readonly labels: ModelLabels
  readonly active: ActiveCalls
}

/** Returns a function that stops the measurement of the event loop. */
export function registerGauges(
  llm: Llm,
  instruments: Instruments,
  { labels, active }: GaugeParts,
): () => void {
  instruments.gauge('modelmount_calls_active', () => toValues(active.counts(), labels))
  instruments.gauge('modelmount_calls_waiting', () => {
    const counts = new Map<string, number>()
    for (const { model, waiting } of llm[internals].queues()) {
      const label = labels.of(model, false)
      counts.set(label, (counts.get(label) ?? 0) + waiting)
    }
    return toValues(counts, labels)
  })
  const ofModels = (read: (model: LoadedModel) => number | undefined): Values<'modelmount_model_loaded'> =>
    llm.loaded().flatMap((model) => {
      const value = read(model)
      return value === undefined ? [] : [[{ model: labels.of(model.name, true) }, value] as const]
    })
  instruments.gauge('modelmount_model_loaded', () => ofModels(({ state }) => (state === 'ready' ? 1 : 0)))
  instruments.gauge('modelmount_model_vram_bytes', () => ofModels(({ gpuBytes }) => gpuBytes))
  const activities = {
    modelmount_model_active_sequences: 'activeSequences',
    modelmount_model_waiting_sequences: 'waitingSequences',
    modelmount_model_memory_bytes: 'memoryBytes',
    modelmount_model_cached_states_bytes: 'cachedStateBytes',
  } as const
  for (const [name, field] of Object.entries(activities))
    instruments.gauge(name as keyof typeof activities, () => ofModels(({ activity }) => activity?.[field]))
  instruments.gauge('modelmount_batch_items_queued', async () => toItems(await countQueuedItems(llm)))
  registerReplicas(llm, instruments)
  return measureEventLoop(instruments)
}

/** Models without calls have 0: a gap would let the minimum over a time leave it out. */
const toValues = (
  counts: ReadonlyMap<string, number>,
  labels: ModelLabels,
): Values<'modelmount_calls_active'> =>
  [...new Set([...labels.known(), ...counts.keys()])].map((model) => [{ model }, counts.get(model) ?? 0])

const toItems = (count: number | undefined): Values<'modelmount_batch_items_queued'> =>
  count === undefined ? [] : [[{}, count]]

/** A scrape waits no longer for the database: Prometheus gives up after 10 s by default. In ms. */
const databaseTimeoutMs = 1_000

/** Undefined in an app without batches, and while the database fails: the other metrics are still served. */
async function countQueuedItems(llm: Llm): Promise<number | undefined> {
  // To list batches would create their database.
  if (!llm[internals].hasBatches()) return undefined
  const page = llm.batches.list({ limit: 100 }).catch(() => undefined)
  const { batches } = (await withTimeout(page, databaseTimeoutMs)) ?? {}
  return batches?.reduce((sum, { counts }) => sum + counts.processing, 0)
}

const percentiles = [50, 90, 99, 100]

function measureEventLoop(instruments: Instruments): () => void {
  const resolutionMs = 10
  const delays = monitorEventLoopDelay({ resolution: resolutionMs })
  delays.enable()
  instruments.gauge('modelmount_event_loop_delay_seconds', () => {
    const values = percentiles.map((percentile) => {
      // Each sample contains the interval of the timer itself.
      const ms = Math.max(0, delays.percentile(percentile) / 1e6 - resolutionMs)
      return [{ percentile }, ms / 1_000] as const
    })
    delays.reset()
    return values
  })
  return () => void delays.disable()
}
