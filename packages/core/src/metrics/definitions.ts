/** The metrics, as data: their names, types and labels, which docs/operations/metrics.md and the Grafana dashboard also have. */

/** A metric: its type, meaning, labels and buckets. */
export interface MetricDefinition {
  /** Type of the metric in Prometheus. */
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** What the metric counts, as one sentence. */
  readonly help: string
  /** Names of its labels. Empty without any. */
  readonly labels: readonly string[]
  /** Upper bounds of the buckets of a histogram, in the unit of its name. */
  readonly buckets?: readonly number[]
}

/** From the delay of a cached prompt to that of a cold load behind a queue, in seconds. */
const waits = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]
/** From a small model on a card to a large one on a busy processor, in seconds. */
const tokenTimes = [0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2.5]

/** All of them begin with `modelmount_`. */
export const metrics = {
  modelmount_http_responses_total: {
    type: 'counter',
    help: 'HTTP responses of the routes, also those without a call of a model.',
    labels: ['api', 'route', 'method', 'code'],
  },
  modelmount_calls_total: {
    type: 'counter',
    help: 'Calls that are over, by their outcome: ended, aborted or failed, and the finish reason or error code. Those of the admin API and of files have no model.',
    labels: ['route', 'kind', 'model', 'status', 'reason'],
  },
  modelmount_calls_active: {
    type: 'gauge',
    help: 'Calls that have passed all checks and the queue of this app, and are not over.',
    labels: ['model'],
  },
  modelmount_calls_waiting: {
    type: 'gauge',
    help: 'Calls in the queue of this app.',
    labels: ['model'],
  },
  modelmount_call_duration_seconds: {
    type: 'histogram',
    help: 'Time from the start of a call to its end, until the reader has the whole answer.',
    labels: ['kind', 'model'],
    buckets: waits,
  },
  modelmount_queue_time_seconds: {
    type: 'histogram',
    help: 'Time from the start of a call until it goes to the engine, in its checks and the queue.',
    labels: ['kind', 'model'],
    buckets: waits,
  },
  modelmount_time_to_first_token_seconds: {
    type: 'histogram',
    help: 'Time from the start of a call to its first output token, with the queue and the load of the model.',
    labels: ['model'],
    buckets: waits,
  },
  modelmount_time_per_output_token_seconds: {
    type: 'histogram',
    help: 'Average time per output token after the first one, of each call with one answer of at least two.',
    labels: ['model'],
    buckets: tokenTimes,
  },
  modelmount_prefill_tokens_total: {
    type: 'counter',
    help: 'Prompt tokens that were evaluated, without those whose state was there already.',
    labels: ['model'],
  },
  modelmount_decode_tokens_total: {
    type: 'counter',
    help: 'Output tokens that were generated.',
    labels: ['model'],
  },
  modelmount_prompt_cache_hit_tokens_total: {
    type: 'counter',
    help: 'Prompt tokens whose state was there already, from the prompt cache or an earlier prompt.',
    labels: ['model'],
  },
  modelmount_prompt_cache_write_tokens_total: {
    type: 'counter',
    help: 'Prompt tokens written to the prompt cache at breakpoints.',
    labels: ['model'],
  },
  modelmount_prompt_cache_evicted_states_total: {
    type: 'counter',
    help: 'Saved prompt states that the model process has dropped, by reason: expired, memory or deleted.',
    labels: ['model', 'reason'],
  },
  modelmount_limiter_decisions_total: {
    type: 'counter',
    help: 'Calls that the rate limits and spending limits have admitted or refused, and the limit that refused.',
    labels: ['decision', 'limit'],
  },
  modelmount_spend_usd_total: {
    type: 'counter',
    help: 'Cost of calls in dollars, by the prices of the app.',
    labels: ['model'],
  },
  modelmount_model_loaded: {
    type: 'gauge',
    help: '1 for each model that this app has loaded.',
    labels: ['model'],
  },
  modelmount_model_active_sequences: {
    type: 'gauge',
    help: 'Prompts and answers that the model process evaluates now, of all apps that share it.',
    labels: ['model'],
  },
  modelmount_model_waiting_sequences: {
    type: 'gauge',
    help: 'Prompts and answers that wait in the model process, of all apps that share it.',
    labels: ['model'],
  },
  modelmount_model_memory_bytes: {
    type: 'gauge',
    help: 'Resident memory of the model process.',
    labels: ['model'],
  },
  modelmount_model_vram_bytes: {
    type: 'gauge',
    help: 'Memory of the model on graphics cards.',
    labels: ['model'],
  },
  modelmount_model_cached_states_bytes: {
    type: 'gauge',
    help: 'Size of the saved prompt states of the model, in files.',
    labels: ['model'],
  },
  modelmount_model_load_seconds: {
    type: 'histogram',
    help: 'Time to load a model.',
    labels: ['model'],
    buckets: waits,
  },
  modelmount_model_ends_total: {
    type: 'counter',
    help: 'Model processes that this app no longer uses, by reason: unload, evict or crash.',
    labels: ['model', 'reason'],
  },
  modelmount_replica_state: {
    type: 'gauge',
    help: '1 for the state of each replica of a fleet: ready, starting, overloaded, ejected or draining. 0 for its other states.',
    labels: ['engine', 'replica', 'state'],
  },
  modelmount_replica_running_calls: {
    type: 'gauge',
    help: 'Calls of this app that run at the replica.',
    labels: ['engine', 'replica'],
  },
  modelmount_replica_outstanding_tokens: {
    type: 'gauge',
    help: 'Tokens that these calls have still to evaluate and to generate, as an estimate.',
    labels: ['engine', 'replica'],
  },
  modelmount_replica_calls_total: {
    type: 'counter',
    help: 'Calls of this app that have gone to the replica, also those that failed there.',
    labels: ['engine', 'replica'],
  },
  modelmount_replica_failed_calls_total: {
    type: 'counter',
    help: 'Calls of this app that have failed at the replica. Others may have answered them.',
    labels: ['engine', 'replica'],
  },
  modelmount_replica_input_tokens_total: {
    type: 'counter',
    help: 'Prompt tokens of ended calls at the replica.',
    labels: ['engine', 'replica'],
  },
  modelmount_replica_cached_tokens_total: {
    type: 'counter',
    help: 'Those of them that the replica has found in its cache.',
    labels: ['engine', 'replica'],
  },
  modelmount_replica_ejections_total: {
    type: 'counter',
    help: 'How often the replica was ejected after failures.',
    labels: ['engine', 'replica'],
  },
  modelmount_batch_items_queued: {
    type: 'gauge',
    help: 'Requests of the 100 newest batches that wait or run, in the database that all apps share.',
    labels: [],
  },
  modelmount_batch_items_total: {
    type: 'counter',
    help: 'Requests of batches that have ended in this app, by outcome: succeeded, errored, canceled or expired.',
    labels: ['outcome'],
  },
  modelmount_pull_bytes_total: {
    type: 'counter',
    help: 'Bytes that pulls of models have downloaded.',
    labels: [],
  },
  modelmount_event_loop_delay_seconds: {
    type: 'gauge',
    help: 'Delay of the event loop of this app since the last scrape: the median, the percentiles 90 and 99, and the maximum (100).',
    labels: ['percentile'],
  },
} as const satisfies Readonly<Record<string, MetricDefinition>>

/** Name of a metric, such as `modelmount_calls_total`. */
export type MetricName = keyof typeof metrics
