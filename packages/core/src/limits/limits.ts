/** Types of the rate limiter: limits, subjects, costs and reservations. */
import type { LimitStatus } from '../errors.ts'

export type { LimitStatus }

/**
 * The limits of a subject: whole numbers from 1 to 100,000,000,000, for a day up to 100,000,000. A missing
 * limit does not apply.
 */
export interface Limits {
  /** Requests per minute. The bucket refills evenly, so a pause can be followed by a burst of this size. */
  readonly requestsPerMinute?: number | undefined
  /**
   * Input and output tokens together. A call reserves its input tokens and up to 1,024 output tokens. A
   * longer answer takes 1,024 more at a time, and may put the bucket into debt. While the bucket is in debt,
   * it admits no call that needs tokens.
   *
   * In any minute, sequential calls (`concurrent: 1`) use at most a full bucket, its refill, and the debt of
   * one call. With parallel calls, each call that is running when the bucket becomes empty can add a debt. A
   * call that ends returns its unused tokens, and other calls can use these from then on.
   */
  readonly tokensPerMinute?: number | undefined
  /**
   * Input tokens only, without those that are read from the prompt cache. A call reserves them as for
   * `tokensPerMinute`.
   */
  readonly inputTokensPerMinute?: number | undefined
  /** Output tokens only. A call reserves them as for `tokensPerMinute`. */
  readonly outputTokensPerMinute?: number | undefined
  /**
   * Input and output tokens together, in a separate bucket that refills over 24 hours. Calls reserve and
   * return tokens as for `tokensPerMinute`. After a pause, one day can therefore admit up to twice the limit:
   * the full bucket and its refill.
   */
  readonly tokensPerDay?: number | undefined
  /** Maximum number of calls that run at the same time. */
  readonly concurrent?: number | undefined
}

/** The limits of a caller: of all its calls together, of each call, and of each of its end users. */
export interface InferenceLimits extends Limits {
  /**
   * Maximum output tokens of one call: a whole number from 1 to 1,000,000,000. A request for more is
   * rejected with `invalid_request`. A request without a maximum gets this one, and its answer ends with the
   * finish reason `length`. With several prompts, the answer to each of them gets an equal share.
   *
   * @default only the context size limits an answer
   */
  readonly maxOutputTokens?: number | undefined
  /**
   * Limits of each end user of the caller, in addition to the limits of the caller. A call names its end user
   * with `endUser`. All calls without an end user share the limits of one more end user.
   *
   * The client chooses these ids. So the limits separate the users of an app from each other, and do not bind
   * the app itself.
   *
   * @default none
   */
  readonly perEndUser?: EndUserLimits | undefined
}

/** The limits of each end user: whole numbers as in `Limits`. */
export type EndUserLimits = Omit<Limits, 'tokensPerDay'>

/**
 * A bucket of `limit` requests that refills over `windowMs`. It refills continuously, and does not reset at
 * the end of a window. After a pause, one window can therefore admit up to twice `limit`: the full bucket and
 * its refill.
 */
export interface WindowLimit {
  /** A whole number from 1 to 6e15 / `windowMs`. */
  readonly limit: number
  /** Whole milliseconds, from 1 to 31,622,400,000 (366 days). */
  readonly windowMs: number
}

/** An API key, a user, an address or a model whose calls are counted together. */
export interface Subject {
  /** Calls with the same id share their counts, wherever the limiter is used. */
  readonly id: string
  /** Pass the same limits with each call of this subject. @default the limits of the limiter */
  readonly limits?: Limits | WindowLimit | undefined
  /** Follows the limit in error messages, such as `per end user`. @default nothing */
  readonly label?: string | undefined
}

/** The cost of a call: whole numbers from 0 to 1,000,000,000. */
export interface Cost {
  /** What `requestsPerMinute` counts. */
  readonly requests: number
  /** What `tokensPerMinute` and `tokensPerDay` count. */
  readonly tokens: number
  /** What `inputTokensPerMinute` counts. @default 0 */
  readonly inputTokens?: number
  /** What `outputTokensPerMinute` counts. @default 0 */
  readonly outputTokens?: number
}

/** Counts requests and tokens of subjects against their limits, as token buckets. */
export interface RateLimiter {
  /**
   * Limits of each subject that has no `limits` of its own. Undefined if the limiter does not report them.
   */
  readonly limits?: Limits | undefined
  /**
   * Takes the cost from the buckets of all subjects, or from none. A cost larger than a whole bucket is
   * admitted when the bucket is full, and leaves a debt.
   *
   * Rejects with an `LlmError` of the code `rate_limit` when a limit does not admit the call. After
   * `retryAfterMs`, the same call is admitted if no other call comes first. For a concurrency limit that time
   * is unknown, and `retryAfterMs` is 1,000. If all running calls are those of processes that have ended,
   * `retryAfterMs` is the time until they expire, at most 9 s.
   */
  reserve(subjects: readonly Subject[], cost: Cost): Promise<Reservation>
  /**
   * Returns the status of the limits, without taking anything. For several subjects, returns for each limit
   * and window the status of the subject with the least remaining.
   */
  status(subjects: readonly Subject[]): Promise<readonly LimitStatus[]>
}

/** A limiter that must be closed by the code that created it. */
export interface ClosableRateLimiter extends RateLimiter {
  /** Stops timers, and closes the connections that the limiter opened. */
  close(): Promise<void>
}

/** Where limiters store their counts, such as `redisLimiterStore(client)`. */
export interface LimiterStore {
  /**
   * Opens a limiter. Rejects if the store is unavailable.
   *
   * @param options.limits of each subject that has no `limits` of its own
   * @param options.now clock for tests, in whole milliseconds. By default, the store has its own
   */
  open(options: {
    readonly limits: Limits
    readonly now?: (() => number) | undefined
  }): Promise<ClosableRateLimiter>
}

/** The type of `llm.limits`, the rate limiter of callers and models. */
export interface CallerLimits extends RateLimiter {
  /**
   * Returns the status of a caller's limits per minute and per day: `llm.limits.of(await llm.keys.get(id))`.
   * Takes nothing from them. Returns an empty list for a caller without limits. Rejects with `LlmError`.
   */
  of(caller: LimitedCaller): Promise<readonly LimitStatus[]>
}

/** The part of a caller that determines its limits. */
export interface LimitedCaller {
  readonly id: string
  readonly limits?: InferenceLimits | undefined
  readonly tier?: string | undefined
}

/** A request of Node, Express or Nest, or the context of Koa. */
export interface WithHeaders {
  /** Headers by name, in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

/**
 * The reserved cost of a call. The call counts as running until `settle` or `release`. Only the first of
 * these two has an effect.
 */
export interface Reservation {
  /** The status of the limits at admission, for headers. */
  readonly limits: readonly LimitStatus[]
  /**
   * Takes more from the buckets while the call runs, into debt if necessary. Never rejects because of a
   * limit, but rejects if the database fails.
   */
  take(more: Cost): Promise<void>
  /**
   * Corrects the reserved cost to the actual cost. Gives unused units back, or takes missing units, into debt
   * if necessary. If the database fails, `settle` rejects, and the limiter retries later.
   *
   * @param actual the total cost @default the reserved and taken cost
   */
  settle(actual?: Cost): Promise<void>
  /** Gives everything back, as if no call had been made. Rejects like `settle`. */
  release(): Promise<void>
}
