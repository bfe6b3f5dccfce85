/** Deletes the API keys of a tenant, with their secrets, limit requests and spending. */
import { toStorableId } from '../../limits/demand.ts'
import type { Database } from '../../storage/database.ts'
import { deleteSpending } from '../usage/spending.ts'
import type { DataDeletion, DeletedCounts, TenantData } from './tenant-data.ts'

export class KeyData implements TenantData {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** Deletes revoked keys only: the calls of a key that was created meanwhile have not been ended. */
  async deleteTenant({ tenant }: Pick<DataDeletion, 'tenant'>): Promise<DeletedCounts> {
    const counts = { keys: 0, limitRequests: 0, spending: 0 }
    for (;;) {
      const batch = await this.#deleteBatch(toStorableId(tenant))
      if (batch.keys === 0) return counts
      counts.keys += batch.keys
      counts.limitRequests += batch.limitRequests
      counts.spending += batch.spending
    }
  }

  /** Deletes keys and what refers to them in one transaction, so that a crash leaves no orphan. */
  #deleteBatch(tenant: string): Promise<Record<'keys' | 'limitRequests' | 'spending', number>> {
    return this.#database.transaction(async (queries) => {
      const { query } = queries
      // Locks the keys, as every change of a key does.
      const rows = await query<{ readonly id: string }>(
        `UPDATE modelmount_keys SET name = name WHERE id IN
           (SELECT id FROM modelmount_keys WHERE COALESCE(tenant, id) = ? AND revoked_at IS NOT NULL
            ORDER BY id LIMIT ${batchSize}) RETURNING id`,
        [tenant],
      )
      if (rows.length === 0) return { keys: 0, limitRequests: 0, spending: 0 }
      const ids = rows.map(({ id }) => id)
      const list = ids.map(() => '?').join(', ')
      await query(`DELETE FROM modelmount_sessions WHERE key_id IN (${list})`, ids)
      await query(`DELETE FROM modelmount_key_secrets WHERE key_id IN (${list})`, ids)
      const requests = await query(
        `DELETE FROM modelmount_limit_requests WHERE key_id IN (${list}) RETURNING id`,
        ids,
      )
      // Requests of other tenants that these keys have decided.
      await query(`UPDATE modelmount_limit_requests SET decided_by = NULL WHERE decided_by IN (${list})`, ids)
      await query(`DELETE FROM modelmount_keys WHERE id IN (${list})`, ids)
      return {
        keys: ids.length,
        limitRequests: requests.length,
        spending: await deleteSpending(queries, ids),
      }
    })
  }
}

const batchSize = 200
