/**
 * The state of a token bucket. One request or token takes `windowMs` points from the level. The bucket gains
 * `limit` points per millisecond. So all levels are whole numbers, without rounding.
 */
export interface Bucket {
  /** At most `fullLevel`. A level below 0 is a debt. */
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

/** The window of limits per day. */
export const dayMs = 86_400_000

/**
 * The largest limit per minute. The level of its full bucket, 6e15, is still an exact integer as a double.
 */
export const maxLimit = 1e11

/**
 * The largest limit per day. The level of its full bucket, 8.64e15, is still an exact integer as a double.
 */
export const maxDailyLimit = 1e8

/** The highest allowed level of a full bucket, for any window. */
export const maxLevel = maxLimit * minuteMs

export const fullLevel = ({ limit, windowMs }: BucketSize): number => limit * windowMs

/** Returns the level of a bucket at the time `now`. If the clock was set back, nothing is added. */
export function levelAt({ level, at }: Bucket, size: BucketSize, now: number): number {
  const elapsedMs = Math.max(0, now - at)
  // Compares before it multiplies, because the product may be no exact double after a long time.
  if (elapsedMs >= msUntil(fullLevel(size), level, size)) return fullLevel(size)
  // Adds in two steps, because the gain from a deep debt to a nearly full bucket may be no exact double.
  const halfMs = Math.floor(elapsedMs / 2)
  return level + halfMs * size.limit + (elapsedMs - halfMs) * size.limit
}

/**
 * Returns the level after a call takes `units`, or gives them back if `units` is negative. The debt is
 * limited to numbers that a double represents exactly.
 */
export const levelAfter = (level: number, size: BucketSize, units: number): number =>
  Math.max(Number.MIN_SAFE_INTEGER, Math.min(level - units * size.windowMs, fullLevel(size)))

/**
 * Returns the milliseconds until the bucket admits a call of these units, if no other call comes first.
 * Returns 0 if it admits the call now, and always for 0 units.
 */
export function waitMs(level: number, size: BucketSize, units: number): number {
  if (units === 0) return 0
  // A call that costs more than the whole bucket is admitted when the bucket is full.
  const enough = Math.min(units * size.windowMs, fullLevel(size))
  return msUntil(enough, level, size)
}

/** Milliseconds until the bucket is full. */
export const resetMs = (level: number, size: BucketSize): number => msUntil(fullLevel(size), level, size)

/** Milliseconds until the level is at least `target`, which is above 0. */
function msUntil(target: number, level: number, { limit }: BucketSize): number {
  // Pays off the debt first, because the difference to a deep debt may be no exact double.
  const debtMs = Math.max(0, Math.ceil(-level / limit))
  const paidLevel = level + debtMs * limit
  return debtMs + Math.max(0, Math.ceil((target - paidLevel) / limit))
}
