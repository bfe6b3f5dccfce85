/** Deletes the usage and the spending of a tenant, or makes its sums anonymous. */
import { toStorableId } from '../../limits/demand.ts'
import type { Database, Queries } from '../../storage/database.ts'
import { deleteSpending } from '../usage/spending.ts'
import { addSums, type SumsRow, sumsColumns } from '../usage/sums.ts'
import type { DataDeletion, DeletedCounts, TenantData } from './tenant-data.ts'

/** The caller and the tenant of anonymous sums. The empty id is the app itself. */
export const anonymous = '(deleted)'

export class UsageData implements TenantData {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async deleteTenant({ tenant, usage }: DataDeletion): Promise<DeletedCounts> {
    const id = toStorableId(tenant)
    // Anonymous sums would be added to themselves again and again.
    const isAnonymous = usage === 'anonymize' && id !== anonymous
    const counts = { calls: 0, sums: 0, spending: 0 }
    for (;;) {
      const batch = await this.#database.transaction((queries) => deleteBatch(queries, id, isAnonymous))
      counts.calls += batch.calls
      counts.sums += batch.sums
      counts.spending += batch.spending
      if (batch.calls + batch.sums === 0) break
    }
    // Otherwise the notes of killed calls would be charged later. A call that still runs stores its row again.
    await this.#database.query('DELETE FROM modelmount_funds WHERE COALESCE(tenant, caller) = ?', [id])
    const { calls, sums, spending } = counts
    return { calls, [isAnonymous ? 'anonymizedSums' : 'usageSums']: sums, spending }
  }

  async hasCallsBefore(tenant: string, time: number): Promise<boolean> {
    const found = await this.#database.query(
      'SELECT 1 AS found FROM modelmount_calls WHERE COALESCE(tenant, caller) = ? AND at <= ? LIMIT 1',
      [toStorableId(tenant), time],
    )
    return found.length > 0
  }
}

async function deleteBatch(
  queries: Queries,
  tenant: string,
  isAnonymous: boolean,
): Promise<Record<'calls' | 'sums' | 'spending', number>> {
  const { query } = queries
  const callers = await listCallers(queries, tenant)
  // Before the sums, because the ledger locks these rows in the same order.
  const spending = await deleteSpending(queries, await withoutOtherTenants(queries, tenant, callers))
  const calls = await query(
    `DELETE FROM modelmount_calls WHERE id IN
       (SELECT id FROM modelmount_calls WHERE COALESCE(tenant, caller) = ? LIMIT ${batchSize}) RETURNING id`,
    [tenant],
  )
  if (callers.length === 0) return { calls: calls.length, sums: 0, spending }
  const sums = await query<SumsRow>(
    `DELETE FROM modelmount_usage_days WHERE (day, caller, model) IN
       (SELECT day, caller, model FROM modelmount_usage_days
        WHERE COALESCE(tenant, caller) = ? AND caller IN (${listOf(callers)}) LIMIT ${batchSize})
     RETURNING ${sumsColumns.join(', ')}`,
    [tenant, ...callers],
  )
  if (isAnonymous)
    await addSums(
      queries,
      sums.map((row) => ({ ...row, caller: anonymous, tenant: anonymous, key_name: null })),
    )
  return { calls: calls.length, sums: sums.length, spending }
}

/** Callers of some sums of the tenant. */
async function listCallers({ query }: Queries, tenant: string): Promise<readonly string[]> {
  const rows = await query<{ readonly caller: string }>(
    `SELECT DISTINCT caller FROM
       (SELECT caller FROM modelmount_usage_days WHERE COALESCE(tenant, caller) = ? LIMIT ${batchSize}) AS batch
     ORDER BY caller`,
    [tenant],
  )
  return rows.map(({ caller }) => caller)
}

/** Drops callers that are also callers of another tenant, because their spending limits still apply. */
async function withoutOtherTenants(
  { query }: Queries,
  tenant: string,
  callers: readonly string[],
): Promise<readonly string[]> {
  if (callers.length === 0) return []
  const list = listOf(callers)
  const rows = await query<{ readonly caller: string }>(
    `SELECT caller FROM modelmount_usage_days WHERE caller IN (${list}) AND COALESCE(tenant, caller) <> ?
     UNION SELECT id FROM modelmount_keys WHERE id IN (${list}) AND COALESCE(tenant, id) <> ?`,
    [...callers, tenant, ...callers, tenant],
  )
  const others = new Set(rows.map(({ caller }) => caller))
  return callers.filter((caller) => !others.has(caller))
}

const listOf = (values: readonly string[]): string => values.map(() => '?').join(', ')

const batchSize = 200
