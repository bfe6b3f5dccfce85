/** Merges sums of days into sums of months. The rows of months are in the same table, with a month as `day`. */
import type { Database } from '../../storage/database.ts'
import { monthOf } from './periods.ts'
import { addSums, type SumsRow, sumsColumns } from './sums.ts'

/**
 * Merges the days of all months that end before the time `before`. Works in batches, so that other queries run
 * in between. Several processes may do this at once.
 */
export async function mergeIntoMonths(
  database: Database,
  before: number,
  isClosed: () => boolean,
): Promise<void> {
  const firstKept = `${monthOf(before)}-01`
  for (let after = ''; ; ) {
    const [first] = await database.query<{ day: string | null }>(
      'SELECT min(day) AS day FROM modelmount_usage_days WHERE day > ? AND day < ?',
      [after, firstKept],
    )
    const day = first?.day ?? undefined
    if (day === undefined) return
    const month = day.slice(0, monthLength)
    // A month sorts before its days. So after the row of a month, its remaining days are next.
    const isMonth = day === month
    if (!isMonth) while ((await mergeBatch(database, month)) === batchSize && !isClosed());
    after = isMonth ? month : lastDayOf(month)
    if (isClosed()) return
  }
}

/** Returns the number of merged rows. */
const mergeBatch = (database: Database, month: string): Promise<number> =>
  database.transaction(async (queries) => {
    const days = await queries.query<SumsRow>(
      `DELETE FROM modelmount_usage_days WHERE (day, caller, model) IN
         (SELECT day, caller, model FROM modelmount_usage_days WHERE day > ? AND day <= ?
          ORDER BY day, caller, model LIMIT ${batchSize})
       RETURNING ${sumsColumns.join(', ')}`,
      [month, lastDayOf(month)],
    )
    const inOrder = [...days].sort((a, b) => (a.day < b.day ? -1 : 1))
    await addSums(
      queries,
      inOrder.map((row) => ({ ...row, day: month })),
    )
    return days.length
  })

const batchSize = 500
const monthLength = '2025-11'.length

/** The last day that a month can have. */
const lastDayOf = (month: string): string => `${month}-31`
