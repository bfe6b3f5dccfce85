/**
 * A token bucket in whole numbers. Its level is kept in 1/60,000 of a unit: then as many flow in within a millisecond as the
 * limit says for a minute, and nothing is ever rounded.
 */
export interface Bucket {
  /** At most that of a full one, for a limit's whole minute; below 0 it is in debt. */
  readonly level: number
  /** When it was so, in whole milliseconds. */
  readonly at: number
}

/** Of a level in one unit: milliseconds in a minute. */
export const levelPerUnit = 60_000

/** The largest limit, in units per minute: so a level, and what it is divided by, are exact in doubles. */
export const maxLimit = 1e11

export const fullLevel = (limit: number): number => limit * levelPerUnit

/** How it stands now. A clock that went back has counted no time. */
export function levelAt({ level, at }: Bucket, limit: number, now: number): number {
  const missing = fullLevel(limit) - level
  const elapsedMs = Math.max(0, now - at)
  // Compared before it is multiplied: a day times the limit may be beyond the exact numbers.
  return elapsedMs >= missing / limit ? fullLevel(limit) : level + elapsedMs * limit
}

/** When so many more units are taken, or given back where that is below 0. No more comes back than it holds. */
export const levelAfter = (level: number, limit: number, units: number): number =>
  Math.min(level - units * levelPerUnit, fullLevel(limit))

/** Milliseconds until so many units are let in, if nothing else happens; 0 for now. What costs nothing waits for nothing. */
export function waitMs(level: number, limit: number, units: number): number {
  if (units === 0) return 0
  // One that is larger than the bucket gets in when that is full.
  const enough = Math.min(units * levelPerUnit, fullLevel(limit))
  return Math.max(0, Math.ceil((enough - level) / limit))
}

/** Milliseconds until it is full. */
export const resetMs = (level: number, limit: number): number =>
  Math.max(0, Math.ceil((fullLevel(limit) - level) / limit))
