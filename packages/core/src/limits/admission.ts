/** Whether a call gets in, given how its limits stand: the same decision for each store. */
import { LlmError } from '../errors.ts'
import { levelPerUnit, resetMs, waitMs } from './bucket.ts'
import type { LimitStatus } from './limits.ts'

export type LimitName = LimitStatus['name']

/** What a call wants to take from a bucket. */
export interface BucketCharge {
  readonly name: LimitName
  readonly limit: number
  /** As of now; and when it has let the call in, of what is left. */
  level: number
  readonly units: number
}

/** How many calls of a subject run, and may. */
export interface ConcurrencyUsage {
  readonly running: number
  readonly limit: number
}

/** Nothing where all let it in. */
export function findRefusal(
  charges: readonly BucketCharge[],
  concurrency: readonly ConcurrencyUsage[],
): LlmError | undefined {
  let worst: BucketCharge | undefined
  let longestMs = 0
  for (const charge of charges) {
    const ms = waitMs(charge.level, charge.limit, charge.units)
    if (ms > longestMs) [worst, longestMs] = [charge, ms]
  }
  const fullest = concurrency.find(({ running, limit }) => running >= limit)
  if (worst && (!fullest || longestMs >= unknownWaitMs))
    return limitExceeded(`${worst.limit} ${worst.name} per minute`, longestMs, charges, worst.name)
  return fullest && limitExceeded(`${fullest.limit} requests at the same time`, unknownWaitMs, charges)
}

/** Until one of those that run ends. */
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

/** Whole ones, after which it is time. */
export const toRetrySeconds = (ms: number): number => Math.max(1, Math.ceil(ms / 1_000))

/** For each name the bucket with the least left, and of those the one that is full last. */
export function statusOf(charges: readonly BucketCharge[]): readonly LimitStatus[] {
  const statuses: LimitStatus[] = []
  for (const { name, limit, level } of charges) {
    const status = {
      name,
      limit,
      remaining: Math.max(0, Math.floor(level / levelPerUnit)),
      resetMs: resetMs(level, limit),
    }
    const index = statuses.findIndex((other) => other.name === name)
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
