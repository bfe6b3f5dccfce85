/** The contracts of limits: limits, subjects, costs and limiters. */
import type { LimitStatus } from '../errors.ts'

export type { LimitStatus }

/** Whole numbers from 1 on. A missing limit is no limit. */
export interface Limits {
  readonly requestsPerMinute?: number | undefined
  /**
   * Input and output tokens. A call reserves its input and up to 1,024 output tokens. A longer answer takes 1,024 more at a time, into
   * debt if necessary, and no call is admitted before the debt is paid. In any minute, sequential calls (`concurrent: 1`) get at most a
   * full bucket, its refill, and the debt of one call. Each parallel call that ran at the last admission can add its debt. Returned
   * tokens count from their return on.
   */
  readonly tokensPerMinute?: number | undefined
  /** Calls at the same time. */
  readonly concurrent?: number | undefined
}

/**
 * A bucket of `limit` requests that refills over `windowMs`. The bucket does not reset at the end of a window: after a pause it is full
 * and refills meanwhile, so one window can admit up to twice `limit`.
 */
export interface WindowLimit {
  /** A whole number from 1 on. */
  readonly limit: number
  /** Whole milliseconds, at most 366 days. */
  readonly windowMs: number
}

/** An API key, a user, an address or a model that limits apply to. */
export interface Subject {
  /** The same text is the same subject, wherever the limiter is used. */
  readonly id: string
  /** Each call of a subject brings the same limits. @default the limits of the limiter */
  readonly limits?: Limits | WindowLimit | undefined
}

/** Whole numbers from 0 to 1,000,000,000. */
export interface Cost {
  readonly requests: number
  readonly tokens: number
}

export interface RateLimiter {
  /** For subjects without limits. `undefined` when the limiter does not tell. */
  readonly limits?: Limits | undefined
  /**
   * Takes the cost from all subjects or from none. A cost above a whole bucket is admitted when the bucket is full, and the rest is
   * owed. Throws `rate_limit` with `retryAfterMs`, after which the same call is admitted if nothing else happens. For a concurrency
   * limit the wait is unknown, and `retryAfterMs` is a second.
   */
  reserve(subjects: readonly Subject[], cost: Cost): Promise<Reservation>
  /** Returns the status of the limits, of several subjects the one with the least left. Takes nothing. */
  status(subjects: readonly Subject[]): Promise<readonly LimitStatus[]>
}

/** A limiter that its creator closes. */
export interface ClosableRateLimiter extends RateLimiter {
  /** Ends timers, and connections that the limiter opened. */
  close(): Promise<void>
}

/** The limits of callers and API keys. */
export interface CallerLimits extends RateLimiter {
  /**
   * Returns the status of a caller's limits per minute: `llm.limits.of(await llm.keys.get(id))`. Takes nothing. The list is empty when
   * the caller has no limits. Rejects with `LlmError`.
   */
  of(caller: LimitedCaller): Promise<readonly LimitStatus[]>
}

interface LimitedCaller {
  readonly id: string
  readonly limits?: Limits | undefined
  readonly tier?: string | undefined
}

/** A request of Node, Express or Nest, or the context of Koa. */
export interface WithHeaders {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

/** Counts as running until it is settled or released. Only the first of these calls has an effect. */
export interface Reservation {
  /** The status of the limits at admission, for headers. */
  readonly limits: readonly LimitStatus[]
  /** Takes more while the call runs, into debt if necessary. Rejects only when the database fails. */
  take(more: Cost): Promise<void>
  /**
   * Returns unused units, and takes what was used beyond, into debt if necessary. Rejects when the database fails, and retries later.
   *
   * @param actual the total cost @default the reserved and taken cost
   */
  settle(actual?: Cost): Promise<void>
  /** Returns everything, as if no call had been made. Rejects like `settle`. */
  release(): Promise<void>
}
