/**
 * Options for the queue of calls before the engine. With a custom `engine` and `auth: 'anonymous'`, calls queue
 * only if one of these options is set.
 */
import type { Duration } from '../units.ts'
import { checkInteger, trimVariable } from './check.ts'
import { resolveTimeout } from './timeout.ts'

export interface QueueingOptions {
  /**
   * How many calls of each model may be in the engine at once, from 1 to 1,000,000. While a tenant holds more
   * than its share of them, other tenants may exceed the number: each gets its share, which is at least one call.
   * The calls above the number count towards `maxQueued`. When it is full, each of up to 512 tenants still gets
   * its one call.
   *
   * @default twice `local.parallel`, so that the engine always has the next call; 64 with a custom `engine`,
   *   and for the models of `engines`
   */
  readonly maxAdmitted?: number | undefined

  /**
   * How many calls may wait for each model, from 0 to 1,000,000. Tenants take turns in the queue. When it is
   * full, the newest call of the tenant with the most waiting calls is rejected with 503.
   *
   * @default `$OLLAMA_MAX_QUEUE`, else 512
   */
  readonly maxQueued?: number | undefined

  /**
   * How long a call may wait in the queue: milliseconds, `'30s'` or `'forever'`, from 1 ms to 24 days. The
   * call is then rejected with 503. The time in the engine does not count.
   *
   * @default '5m'
   */
  readonly queueTimeout?: Duration | 'forever' | undefined
}

export interface ResolvedQueueOptions {
  readonly permits: number
  /** Set if a model with a `parallel` of its own has twice as many permits instead. */
  readonly followsParallel?: true
  readonly maxQueued: number
  /** `Infinity` if calls may wait forever. */
  readonly timeoutMs: number
}

/** Calls of a model that may be in an engine whose number of parallel sequences is unknown. */
export const customEnginePermits = 64

/** Upper bound of both counts. */
const maxCalls = 1e6

/**
 * Returns undefined if calls do not queue.
 *
 * @param parallel sequences that the local engine decodes at once; undefined for a custom engine
 */
export function resolveQueueOptions(
  { maxAdmitted, maxQueued, queueTimeout, auth = 'anonymous' }: QueueingOptions & { readonly auth?: unknown },
  parallel: number | undefined,
  { OLLAMA_MAX_QUEUE }: NodeJS.ProcessEnv,
): ResolvedQueueOptions | undefined {
  // A custom engine may have a queue, and without authentication there is only one caller.
  const isOptional = parallel === undefined && auth === 'anonymous'
  if (isOptional && (maxAdmitted ?? maxQueued ?? queueTimeout) === undefined) return undefined
  const variable = maxQueued === undefined ? trimVariable(OLLAMA_MAX_QUEUE) : undefined
  return {
    ...(maxAdmitted === undefined && parallel !== undefined && { followsParallel: true as const }),
    permits:
      checkInteger('maxAdmitted', maxAdmitted, 1, maxCalls) ??
      (parallel === undefined ? customEnginePermits : 2 * parallel),
    maxQueued:
      variable === undefined
        ? checkInteger('maxQueued', maxQueued ?? 512, 0, maxCalls)
        : checkInteger('$OLLAMA_MAX_QUEUE', Number(variable), 0, maxCalls),
    timeoutMs:
      queueTimeout === 'forever'
        ? Number.POSITIVE_INFINITY
        : resolveTimeout('queueTimeout', queueTimeout ?? '5m'),
  }
}
