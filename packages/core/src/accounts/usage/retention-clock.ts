/**
 * Counts how long rows have been kept, for the deletion of old rows. The clock of the machine may be years
 * ahead for a while. So the time between two observations counts only if it is at most a week: a longer time
 * may be a jump of the clock. If no app ran for months, rows are kept for months longer.
 */
import type { Database } from '../../storage/database.ts'

const dayMs = 86_400_000
const maxStepMs = 7 * dayMs
/** The longest age of a horizon. When the clock has been steady for this time, earlier gaps no longer matter. */
export const longestAgeMs = 366 * dayMs

interface ClockRow {
  /** Time of the last observation. */
  readonly seen_at: number
  /** Time since which no step was longer than `maxStepMs`. */
  readonly steady_since: number
  /** The time without the gaps that do not count. Never later than `seen_at`. */
  readonly counted_to: number
  readonly now: number
}

/** Returns the time before which rows have been kept for at least `ageMs`. */
export type HorizonOf = (ageMs: number) => number

/** @param clock SQL expression of the current time in milliseconds */
export function observeClock(database: Database, clock: string): Promise<HorizonOf> {
  return database.transaction(async ({ query }) => {
    // The first observation may be years ahead, too. The sums say until when the clock was right.
    const [last] = await query<{ day: string | null }>('SELECT max(day) AS day FROM modelmount_usage_days')
    const known = last?.day ? String(Date.parse(last.day)) : clock
    const [row] = await query<ClockRow>(
      `INSERT INTO modelmount_retention_clock (id, seen_at, steady_since, counted_to)
       VALUES (1, ${known}, 0, ${known})
       ON CONFLICT (id) DO UPDATE SET id = excluded.id
       RETURNING seen_at, steady_since, counted_to, ${clock} AS now`,
    )
    const { now, seen_at, counted_to, steady_since } = row as ClockRow
    const stepMs = now - seen_at
    const isSteady = Math.abs(stepMs) <= maxStepMs
    const steadySince = isSteady ? steady_since : now
    const countedTo =
      now - steadySince >= longestAgeMs
        ? now
        : Math.min(now, counted_to + (isSteady ? Math.max(stepMs, 0) : 0))
    await query(
      'UPDATE modelmount_retention_clock SET seen_at = ?, steady_since = ?, counted_to = ? WHERE id = 1',
      [now, steadySince, countedTo],
    )
    return (ageMs) => (now - steadySince >= ageMs ? now : countedTo) - ageMs
  })
}
