/** Decides whether the limits admit a call. The limiters in memory and in a database share this code. */
import { LlmError } from '../errors.ts'
import { type BucketSize, minuteMs, resetMs, waitMs } from './bucket.ts'
import type { LimitStatus } from './limits.ts'

export type LimitName = LimitStatus['name']

/** What a call takes from one bucket, and the bucket's level. */
export interface BucketCharge extends BucketSize {
  readonly name: LimitName
  /** The current level. The limiter lowers it when it admits the call. */
  level: number
  readonly units: number
  /** Follows the limit in the error message. */
  readonly label: string | undefined
}

/** The number of running calls of a subject, and its limit. */
export interface ConcurrencyUsage {
  readonly running: number
  readonly limit: number
  readonly label: string | undefined
  /** Time until all of them have expired, in ms. Undefined while one of them may end at any time. */
  readonly freeInMs?: number | undefined
}

/** Returns the error for a rejected call, or `undefined` when every limit admits the call. */
export function findRefusal(
  charges: readonly BucketCharge[],
  concurrency: readonly ConcurrencyUsage[],
): LlmError | undefined {
  let worst: BucketCharge | undefined
  let longestMs = 0
  for (const charge of charges) {
    const ms = waitMs(charge.level, charge, charge.units)
    if (ms > longestMs) [worst, longestMs] = [charge, ms]
  }
  let fullest: ConcurrencyUsage | undefined
  let freeInMs = 0
  for (const usage of concurrency) {
    const ms = usage.freeInMs ?? unknownWaitMs
    if (usage.running >= usage.limit && (!fullest || ms > freeInMs)) [fullest, freeInMs] = [usage, ms]
  }
  if (worst && (!fullest || longestMs >= freeInMs)) {
    const { limit, name, windowMs, label } = worst
    const text = withLabel(`${countOf(limit, name)} per ${formatWindow(windowMs)}`, label)
    return limitExceeded(text, longestMs, charges, name)
  }
  if (!fullest) return undefined
  const text = withLabel(`${countOf(fullest.limit, 'requests')} at the same time`, fullest.label)
  return limitExceeded(text, freeInMs, charges)
}

function countOf(count: number, name: LimitName): string {
  const words = toWords(name, ' ')
  return `${count} ${count === 1 ? words.slice(0, -1) : words}`
}

/** Returns a name such as `inputTokens` in lower case, with a separator between its words. */
export const toWords = (name: LimitName, separator: string): string =>
  name.replace(/[A-Z]/, (letter) => separator + letter.toLowerCase())

const withLabel = (limit: string, label: string | undefined): string =>
  label === undefined ? limit : `${limit} ${label}`

/**
 * Retry delay after a concurrency limit rejects a call, while the time until a running call ends is unknown.
 */
const unknownWaitMs = 1_000

const limitExceeded = (
  limit: string,
  waitMs: number,
  charges: readonly BucketCharge[],
  exceeded?: LimitName,
): LlmError =>
  new LlmError(
    'rate_limit',
    `This request would exceed the limit of ${limit}. Try again in ${toRetrySeconds(waitMs)} s.`,
    { retryAfterMs: waitMs, limits: statusOf(charges), ...(exceeded && { exceeded }) },
  )

/** Rounds up to whole seconds, so that a retry after this time is not too early. The minimum is 1. */
export const toRetrySeconds = (ms: number): number => Math.max(1, Math.ceil(ms / 1_000))

const windowUnits = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', minuteMs],
  ['second', 1_000],
] as const

/** Formats a window for an error message: `minute`, `15 minutes`, `1500 ms`. */
function formatWindow(windowMs: number): string {
  const [unit, ms] = windowUnits.find(([, ms]) => windowMs % ms === 0) ?? ['ms', 1]
  if (windowMs === ms && unit !== 'ms') return unit
  return `${windowMs / ms} ${unit === 'ms' ? unit : `${unit}s`}`
}

/**
 * Returns one status for each name and window. Each describes the bucket with the least remaining. If several
 * buckets have equally little, it describes the bucket that takes longest to refill.
 */
export function statusOf(charges: readonly BucketCharge[]): readonly LimitStatus[] {
  const statuses: LimitStatus[] = []
  for (const charge of charges) {
    const { name, limit, windowMs, level } = charge
    const status = {
      name,
      limit,
      remaining: Math.max(0, Math.floor(level / windowMs)),
      resetMs: resetMs(level, charge),
      ...(windowMs !== minuteMs && { windowMs }),
    }
    const index = statuses.findIndex(
      (other) => other.name === name && (other.windowMs ?? minuteMs) === windowMs,
    )
    const other = statuses[index]
    if (!other) statuses.push(status)
    else if (
      status.remaining < other.remaining ||
      (status.remaining === other.remaining && status.resetMs > other.resetMs)
    )
      statuses[index] = status
  }
  return statuses
}
