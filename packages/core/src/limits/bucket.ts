/**
 * A token bucket in whole numbers. One unit is `windowMs` levels, so that `limit` levels flow in each millisecond and nothing is ever
 * rounded.
 */
export interface Bucket {
  /** At most that of a full bucket. Below 0 the bucket is in debt. */
  readonly level: number
  /** When the bucket had this level, in whole milliseconds. */
  readonly at: number
}

/** A bucket of `limit` units that refills over `windowMs`. */
export interface BucketSize {
  readonly limit: number
  readonly windowMs: number
}

/** The window of limits per minute. */
export const minuteMs = 60_000

/** The largest limit per minute: levels, and the numbers they are divided by, are exact in doubles. */
export const maxLimit = 1e11

/** The level of the largest bucket, for any window. */
export const maxLevel = maxLimit * minuteMs

export const fullLevel = ({ limit, windowMs }: BucketSize): number => limit * windowMs

/** The level of a bucket now. A clock that was set back adds nothing. */
export function levelAt({ level, at }: Bucket, size: BucketSize, now: number): number {
  const missing = fullLevel(size) - level
  const elapsedMs = Math.max(0, now - at)
  // Compared before the multiplication: a day times the limit may be no exact double.
  return elapsedMs >= missing / size.limit ? fullLevel(size) : level + elapsedMs * size.limit
}

/** The level after taking units, or after returning them when `units` is negative. Debts end where doubles are no longer exact. */
export const levelAfter = (level: number, size: BucketSize, units: number): number =>
  Math.max(Number.MIN_SAFE_INTEGER, Math.min(level - units * size.windowMs, fullLevel(size)))

/** Milliseconds until the bucket admits these units, if nothing else happens; 0 for now. A call that costs nothing never waits. */
export function waitMs(level: number, size: BucketSize, units: number): number {
  if (units === 0) return 0
  // A call that costs more than the whole bucket is admitted when the bucket is full.
  const enough = Math.min(units * size.windowMs, fullLevel(size))
  return Math.max(0, Math.ceil((enough - level) / size.limit))
}

/** Milliseconds until the bucket is full. */
export const resetMs = (level: number, size: BucketSize): number =>
  Math.max(0, Math.ceil((fullLevel(size) - level) / size.limit))
