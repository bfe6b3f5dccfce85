/** The contracts of limits: what is limited, for whom, and what a call takes of it. */
import type { LimitStatus } from '../errors.ts'

export type { LimitStatus }

/** Whole numbers from 1 on; what is not given is not limited. */
export interface Limits {
  readonly requestsPerMinute?: number | undefined
  /**
   * Read and written. An answer is let in when there is what it reads and up to 1,024 of the tokens that it may write; what it writes
   * beyond is taken while it does, 1,024 at a time, into debt where it has to, and nobody is let in before that is paid. So in any
   * minute calls one after the other (`concurrent: 1`) get a full bucket, what flows in, and one call's debt at most; calls side by
   * side, the debt of each that ran already when the last one was let in. What a call gives back counts from then on.
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

/** Whole numbers from 0 to a billion. */
export interface Cost {
  readonly requests: number
  readonly tokens: number
}

export interface RateLimiter {
  /** Of subjects that bring none of their own. Absent: it does not say. */
  readonly limits?: Limits | undefined
  /**
   * Takes the cost from all subjects or from none. What costs more than a limit allows at once is let in when nothing of that limit
   * is used, and owed afterwards. Throws `rate_limit` with `retryAfterMs`, after which the same call would get in if
   * nothing else happened; one too many at the same time waits for others to end, which nobody knows, and is told a second.
   */
  reserve(subjects: readonly Subject[], cost: Cost): Promise<Reservation>
  /** How limits per minute stand, of several subjects those with the least left. Nothing is taken. */
  status(subjects: readonly Subject[]): Promise<readonly LimitStatus[]>
}

/** One that somebody has opened, and closes. */
export interface ClosableRateLimiter extends RateLimiter {
  /** Ends what it has started itself. */
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

/** Counts as running until it is settled or released; of both only the first call does something, and nothing after it. */
export interface Reservation {
  /** How the limits stood when it was let in, for headers. */
  readonly limits: readonly LimitStatus[]
  /** Takes more while it runs: never refused, into debt where it has to. Rejects only where the database does. */
  take(more: Cost): Promise<void>
  /**
   * Gives back what was not used, and takes what was used beyond: into debt, where it has to. Rejects where the database does; what
   * was to be settled is then settled later, by itself.
   *
   * @param actual all in all @default what was taken
   */
  settle(actual?: Cost): Promise<void>
  /** As if nothing had been asked. Rejects like `settle`. */
  release(): Promise<void>
}
