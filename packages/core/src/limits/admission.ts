/** Whether a call gets in, given how its limits stand: the same decision for each store. */
import { LlmError } from '../errors.ts'
import { perUnit, resetMs, waitMs } from './bucket.ts'
import type { LimitStatus } from './limits.ts'

export type LimitName = LimitStatus['name']

/** What a call wants to take from a bucket. */
export interface Draw {
  readonly name: LimitName
  readonly limit: number
  /** As of now; and when it has let the call in, of what is left. */
  level: number
  readonly units: number
}

/** How many calls of a subject run, and may. */
export interface Crowd {
  readonly running: number
  readonly limit: number
}

/** Nothing where all let it in. */
export function refusalOf(draws: readonly Draw[], crowds: readonly Crowd[]): LlmError | undefined {
  let worst: Draw | undefined
  let longestMs = 0
  for (const draw of draws) {
    const ms = waitMs(draw.level, draw.limit, draw.units)
    if (ms > longestMs) [worst, longestMs] = [draw, ms]
  }
  const crowd = crowds.find(({ running, limit }) => running >= limit)
  if (worst && (!crowd || longestMs >= unknownWaitMs))
    return refusal(`${worst.limit} ${worst.name} per minute`, longestMs, draws, worst.name)
  return crowd && refusal(`${crowd.limit} requests at the same time`, unknownWaitMs, draws)
}

/** Until one of those that run ends. */
const unknownWaitMs = 1_000

const refusal = (limit: string, waitMs: number, draws: readonly Draw[], exceeded?: LimitName): LlmError =>
  new LlmError(
    'rate_limit',
    `This request would exceed the limit of ${limit}. Try again in ${toSeconds(waitMs)} s.`,
    { retryAfterMs: waitMs, limits: statusOf(draws), ...(exceeded && { exceeded }) },
  )

/** Whole ones, after which it is time. */
export const toSeconds = (ms: number): number => Math.max(1, Math.ceil(ms / 1_000))

/** For each name the bucket with the least left, and of those the one that is full last. */
export function statusOf(draws: readonly Draw[]): readonly LimitStatus[] {
  const statuses: LimitStatus[] = []
  for (const { name, limit, level } of draws) {
    const status = {
      name,
      limit,
      remaining: Math.max(0, Math.floor(level / perUnit)),
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
