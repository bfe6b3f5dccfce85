/** The contracts of limits: what is limited, for whom, and what a call takes of it. */
import type { LimitStatus } from '../errors.ts'

export type { LimitStatus }

/** Whole numbers from 1 on; what is not given is not limited. */
export interface Limits {
  readonly requestsPerMinute?: number | undefined
  readonly tokensPerMinute?: number | undefined
  /** Calls at the same time. */
  readonly concurrent?: number | undefined
}

/** Who comes under limits: a key, a user, an address, a model. */
export interface Subject {
  /** The same text is the same subject, wherever the limiter is used. */
  readonly id: string
  /** The same for each call of one subject. @default the limits of the limiter */
  readonly limits?: Limits | undefined
}

/** Whole numbers from 0 to a billion. */
export interface Cost {
  readonly requests: number
  readonly tokens: number
}

export interface RateLimiter {
  /**
   * Takes the cost from all subjects or from none. What costs more than a limit allows at once is let in when nothing of that limit
   * is used, and owed afterwards. Throws `rate_limit` with `retryAfterMs`, after which the same call would get in if
   * nothing else happened; one too many at the same time waits for others to end, which nobody knows, and is told a second.
   */
  reserve(subjects: readonly Subject[], cost: Cost): Promise<Reservation>
  /** Ends what it has started itself. */
  close(): Promise<void>
}

/** Counts as running until it is settled or released; of both only the first call does something. */
export interface Reservation {
  /** How the limits stood when it was let in, for headers. */
  readonly limits: readonly LimitStatus[]
  /** Gives back what was not used, and takes what was used beyond: into debt, where it has to. */
  settle(actual: Cost): Promise<void>
  /** As if nothing had been asked. */
  release(): Promise<void>
}
