/** Deletes the expired entries of a database, and the least recently used ones of a store that is too large. */
import type { Database } from '../storage/database.ts'
import { deleteEntries } from './response-data.ts'
import type { StoreBounds } from './response-store.ts'

const tables = ['responses', 'conversations'] as const

/** The sizes of all entries, of which each query takes what it needs. */
const entries = `(SELECT tenant, used_at, bytes FROM modelmount_responses
  UNION ALL SELECT tenant, used_at, bytes FROM modelmount_conversations) AS entries`

export async function trimStore(
  database: Database,
  { maxBytes, maxBytesPerTenant, maxAgeMs }: StoreBounds,
): Promise<void> {
  await deleteAll(database, `used_at <= ${database.clock} - ${maxAgeMs}`, [])
  const large = await database.query<{ readonly tenant: string }>(
    `SELECT tenant FROM ${entries} GROUP BY tenant HAVING sum(bytes) > ?`,
    [maxBytesPerTenant],
  )
  for (const { tenant } of large) {
    const time = await findTime(database, 'WHERE tenant = ?', [tenant], maxBytesPerTenant)
    await deleteAll(database, 'tenant = ? AND used_at <= ?', [tenant, time])
  }
  const time = await findTime(database, '', [], maxBytes)
  await deleteAll(database, 'used_at <= ?', [time])
}

/**
 * Returns the last use of the newest entry that is too much, or -1. The sum of all entries that were used later is
 * not larger than `maxBytes`.
 */
async function findTime(
  database: Database,
  where: string,
  parameters: readonly string[],
  maxBytes: number,
): Promise<number> {
  const [row] = await database.query<{ readonly time: number | null }>(
    `SELECT max(used_at) AS time FROM
       (SELECT used_at, sum(bytes) OVER (ORDER BY used_at DESC) AS total FROM ${entries} ${where}) AS sums
     WHERE total > ?`,
    [...parameters, maxBytes],
    { isSlow: true },
  )
  return row?.time ?? -1
}

async function deleteAll(
  database: Database,
  condition: string,
  parameters: readonly (string | number)[],
): Promise<void> {
  for (const table of tables) {
    const deleteSome = (): Promise<number> =>
      database.transaction(({ query }) => deleteEntries({ query }, table, condition, parameters))
    while ((await deleteSome()) > 0);
  }
}
