/** Counts what happens to the calls and models of an `Llm`, in the registry of the host app. */
import type { Registry } from 'prom-client'
import { subscribe } from '../diagnostics/channels.ts'
import type {
  CallEnded,
  CallFailed,
  CallStarted,
  DiagnosedCall,
  DiagnosticEvents,
} from '../diagnostics/events.ts'
import type { Llm } from '../llm.ts'
import { ActiveCalls } from './active-calls.ts'
import { registerGauges } from './gauges.ts'
import { Instruments, type PromClient } from './instruments.ts'
import { ModelLabels } from './model-labels.ts'
import { PulledBytes } from './pulled-bytes.ts'

type Eviction = DiagnosticEvents['modelmount:cache:evict']

/** See `registerMetrics()`. */
export function collectMetrics(llm: Llm, registry: Registry, client: PromClient): () => void {
  const instruments = new Instruments(registry, client)
  const labels = new ModelLabels()
  const active = new ActiveCalls()
  const modelOf = ({ model, isKnownModel }: DiagnosedCall): string => labels.of(model, isKnownModel)
  const pulled = new PulledBytes((bytes) => instruments.count('modelmount_pull_bytes_total', {}, bytes))
  const stopGauges = registerGauges(llm, instruments, { labels, active })

  const onAdmitted = ({ call, queueMs }: CallStarted & { readonly queueMs: number }): void => {
    const model = modelOf(call)
    active.add(call.id, model)
    instruments.observe('modelmount_queue_time_seconds', { kind: call.kind, model }, queueMs / 1_000)
    instruments.count('modelmount_limiter_decisions_total', { decision: 'admitted', limit: '' })
  }
  const onOver = (event: CallEnded | CallFailed): void => {
    active.delete(event.call.id)
    countCall(instruments, event, modelOf(event.call))
  }
  const unsubscribe = subscribe(llm, {
    'modelmount:call:admitted': onAdmitted,
    'modelmount:call:first-token': ({ call, firstTokenMs }) =>
      instruments.observe(
        'modelmount_time_to_first_token_seconds',
        { model: modelOf(call) },
        firstTokenMs / 1_000,
      ),
    'modelmount:call:end': onOver,
    'modelmount:call:error': onOver,
    'modelmount:limit:refused': ({ error }) =>
      instruments.count('modelmount_limiter_decisions_total', {
        decision: 'refused',
        limit: error.code === 'quota' ? 'spending' : (error.details.exceeded ?? 'concurrent'),
      }),
    'modelmount:request:end': ({ dialect, route, method, status }) =>
      instruments.count('modelmount_http_responses_total', { api: dialect, route, method, code: status }),
    'modelmount:model:load': ({ model, loadMs }) => {
      instruments.observe('modelmount_model_load_seconds', { model: labels.of(model, true) }, loadMs / 1_000)
      for (const reason of ['unload', 'evict', 'crash'] as const) countModelEnd(reason, 0)({ model })
      for (const reason of ['expired', 'memory', 'deleted'] as const)
        countEvicted({ model, reason, states: 0 })
    },
    'modelmount:model:unload': countModelEnd('unload'),
    'modelmount:model:evict': countModelEnd('evict'),
    'modelmount:model:crash': countModelEnd('crash'),
    'modelmount:cache:evict': countEvicted,
    'modelmount:batch:item': ({ outcome, items }) =>
      instruments.count('modelmount_batch_items_total', { outcome }, items),
    'modelmount:pull:progress': (event) => pulled.onProgress(event),
  })
  for (const outcome of ['succeeded', 'errored', 'canceled', 'expired'] as const)
    instruments.count('modelmount_batch_items_total', { outcome }, 0)
  function countEvicted({ model, reason, states }: Pick<Eviction, 'model' | 'reason' | 'states'>): void {
    const of = { model: labels.of(model, true), reason }
    instruments.count('modelmount_prompt_cache_evicted_states_total', of, states)
  }
  function countModelEnd(reason: string, count = 1): (event: { readonly model: string }) => void {
    return ({ model }) =>
      instruments.count('modelmount_model_ends_total', { model: labels.of(model, true), reason }, count)
  }

  return () => {
    unsubscribe()
    stopGauges()
    instruments.remove()
  }
}

function countCall(instruments: Instruments, event: CallEnded | CallFailed, model: string): void {
  const { call, usage, durationMs, firstTokenMs, costNanoUsd = 0 } = event
  const { kind, route = 'in-process' } = call
  instruments.count('modelmount_calls_total', { route, kind, model, ...outcomeOf(event) })
  instruments.observe('modelmount_call_duration_seconds', { kind, model }, durationMs / 1_000)
  instruments.count('modelmount_spend_usd_total', { model }, costNanoUsd / 1e9)
  if (!usage) return
  const written = usage.cacheWriteTokens['5m'] + usage.cacheWriteTokens['1h']
  const generated = usage.outputTokens + usage.undeliveredTokens
  instruments.count('modelmount_prefill_tokens_total', { model }, usage.inputTokens - usage.reusedTokens)
  instruments.count('modelmount_decode_tokens_total', { model }, generated)
  instruments.count('modelmount_prompt_cache_hit_tokens_total', { model }, usage.reusedTokens)
  instruments.count('modelmount_prompt_cache_write_tokens_total', { model }, written)
  // Several answers of one call are generated at the same time.
  if (firstTokenMs === undefined || usage.outputTokens < 2 || event.finishReasons.length > 1) return
  const secondsPerToken = (durationMs - firstTokenMs) / 1_000 / (usage.outputTokens - 1)
  instruments.observe('modelmount_time_per_output_token_seconds', { model }, secondsPerToken)
}

function outcomeOf(event: CallEnded | CallFailed): { readonly status: string; readonly reason: string } {
  if ('error' in event) return { status: 'failed', reason: event.error.code }
  if (event.status === 'aborted') return { status: 'aborted', reason: '' }
  return { status: 'ended', reason: event.finishReasons[0] ?? '' }
}
