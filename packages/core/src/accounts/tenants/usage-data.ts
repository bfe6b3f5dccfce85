/** Deletes the usage and the spending of a tenant, or makes its sums anonymous. */
import { toStorableId } from '../../limits/demand.ts'
import type { Database, Queries } from '../../storage/database.ts'
import { deleteSpending } from '../usage/spending.ts'
import {
  addSums,
  type CountedCall,
  countedColumns,
  type SumsRow,
  subtractSums,
  sumsColumns,
  toSums,
} from '../usage/sums.ts'
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
    let calls = 0
    for (let count = -1; count !== 0; calls += count)
      count = await this.#database.transaction((queries) => deleteCalls(queries, id, isAnonymous))
    const counts = { sums: 0, spending: 0 }
    for (;;) {
      const batch = await this.#database.transaction((queries) => deleteSums(queries, id, isAnonymous))
      if (!batch) break
      counts.sums += batch.sums
      counts.spending += batch.spending
    }
    counts.spending += await this.#database.transaction((queries) => deleteOwnSpending(queries, id))
    // Otherwise the notes of killed calls would be charged later. A call that still runs stores its row again.
    await this.#database.query('DELETE FROM modelmount_funds WHERE COALESCE(tenant, caller) = ?', [id])
    const { sums, spending } = counts
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

/** Deletes some calls, and takes them from their sums. Returns their number. */
async function deleteCalls(queries: Queries, tenant: string, isAnonymous: boolean): Promise<number> {
  const calls = await queries.query<CountedCall>(
    `DELETE FROM modelmount_calls WHERE id IN
       (SELECT id FROM modelmount_calls WHERE COALESCE(tenant, caller) = ? LIMIT ${batchSize})
     RETURNING ${countedColumns.join(', ')}`,
    [tenant],
  )
  const sums = calls.map(toSums)
  await subtractSums(queries, sums)
  if (isAnonymous) await addSums(queries, sums.map(toAnonymous))
  return calls.length
}

/**
 * Deletes some sums of the tenant: its calls without rows, and the names of its callers. Returns undefined if there
 * are none.
 */
async function deleteSums(
  queries: Queries,
  tenant: string,
  isAnonymous: boolean,
): Promise<Record<'sums' | 'spending', number> | undefined> {
  const { query } = queries
  const callers = await listCallers(queries, tenant)
  if (callers.length === 0) return undefined
  const others = await findOtherTenants(queries, tenant, callers)
  // Before the sums, because the ledger locks these rows in the same order.
  const spending = await deleteSpending(
    queries,
    callers.filter((caller) => !others.has(caller)),
  )
  const rows = await query<SumsRow>(
    `DELETE FROM modelmount_usage_days WHERE (day, caller, model) IN
       (SELECT day, caller, model FROM modelmount_usage_days
        WHERE COALESCE(tenant, caller) = ? AND caller IN (${listOf(callers)}) LIMIT ${batchSize})
     RETURNING ${sumsColumns.join(', ')}`,
    [tenant, ...callers],
  )
  // What is left in the sums of a caller with another tenant are the calls of that one.
  const kept = rows.filter(({ caller, calls }) => others.has(caller) && Number(calls) > 0)
  await addSums(
    queries,
    kept.map((row) => ({ ...row, tenant: others.get(row.caller) as string })),
  )
  const deleted = rows.filter((row) => !kept.includes(row))
  if (isAnonymous) await addSums(queries, deleted.filter(({ calls }) => Number(calls) > 0).map(toAnonymous))
  return { sums: deleted.length, spending }
}

/** Deletes the spending of the caller that is its own tenant, which exists without sums if no call was made. */
async function deleteOwnSpending(queries: Queries, tenant: string): Promise<number> {
  const others = await findOtherTenants(queries, tenant, [tenant])
  return others.size > 0 ? 0 : deleteSpending(queries, [tenant])
}

const toAnonymous = (row: SumsRow): SumsRow => ({
  ...row,
  caller: anonymous,
  tenant: anonymous,
  key_name: null,
})

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

/**
 * Another tenant of each caller that has one: its spending limits still apply. The sums name only the tenant of the
 * last call, so the calls count, too.
 */
async function findOtherTenants(
  { query }: Queries,
  tenant: string,
  callers: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const found: OtherTenant[] = []
  for (const caller of callers)
    found.push(
      ...(await query<OtherTenant>(
        `SELECT caller, COALESCE(tenant, caller) AS tenant FROM modelmount_calls
         WHERE caller = ? AND COALESCE(tenant, caller) <> ? LIMIT 1`,
        [caller, tenant],
      )),
    )
  const list = listOf(callers)
  const named = await query<OtherTenant>(
    `SELECT caller, COALESCE(tenant, caller) AS tenant FROM modelmount_usage_days
     WHERE caller IN (${list}) AND COALESCE(tenant, caller) <> ?
     UNION SELECT id AS caller, COALESCE(tenant, id) AS tenant FROM modelmount_keys
     WHERE id IN (${list}) AND COALESCE(tenant, id) <> ?`,
    [...callers, tenant, ...callers, tenant],
  )
  return new Map([...named, ...found].map(({ caller, tenant }) => [caller, tenant]))
}

type OtherTenant = Readonly<Record<'caller' | 'tenant', string>>

const listOf = (values: readonly string[]): string => values.map(() => '?').join(', ')

const batchSize = 200
