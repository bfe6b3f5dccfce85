/**
 * A token bucket in whole numbers. One request or token is worth `windowMs` points of the level, and the
 * bucket gains `limit` points in each millisecond. So no step needs rounding.
 */
export interface Bucket {
  /** At most the level of a full bucket, see `fullLevel`. A level below 0 is a debt. */
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

/**
 * The largest limit per minute. The level of its full bucket, 6e15, is still an exact integer as a double.
 */
export const maxLimit = 1e11

/** The highest level of a full bucket, for any window. */
export const maxLevel = maxLimit * minuteMs

export const fullLevel = ({ limit, windowMs }: BucketSize): number => limit * windowMs

/** Returns the level of a bucket at the time `now`. If the clock was set back, nothing is added. */
export function levelAt({ level, at }: Bucket, size: BucketSize, now: number): number {
  const missing = fullLevel(size) - level
  const elapsedMs = Math.max(0, now - at)
  // Compares before it multiplies, because a day times the limit may be no exact double.
  return elapsedMs >= missing / size.limit ? fullLevel(size) : level + elapsedMs * size.limit
}

/**
 * Returns the level after a call takes `units`, or returns them if `units` is negative. A debt ends where
 * doubles are no longer exact.
 */
export const levelAfter = (level: number, size: BucketSize, units: number): number =>
  Math.max(Number.MIN_SAFE_INTEGER, Math.min(level - units * size.windowMs, fullLevel(size)))

/**
 * Returns the milliseconds until the bucket admits these units, if no other call takes any. 0 means now. A
 * call that costs nothing never waits.
 */
export function waitMs(level: number, size: BucketSize, units: number): number {
  if (units === 0) return 0
  // A call that costs more than the whole bucket is admitted when the bucket is full.
  const enough = Math.min(units * size.windowMs, fullLevel(size))
  return Math.max(0, Math.ceil((enough - level) / size.limit))
}

/** Milliseconds until the bucket is full. */
export const resetMs = (level: number, size: BucketSize): number =>
  Math.max(0, Math.ceil((fullLevel(size) - level) / size.limit))
