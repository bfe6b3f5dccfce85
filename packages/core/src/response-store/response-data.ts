/** Deletes the responses and conversations of a tenant from a database. */
import type { DataDeletion, DeletedCounts, TenantData } from '../accounts/tenants/tenant-data.ts'
import { toStorableId } from '../limits/demand.ts'
import type { Database } from '../storage/database.ts'
import { migrate } from '../storage/migrations.ts'
import { responseTables } from './tables.ts'

/** Also used by apps that store no responses in their database: other apps may have. */
export async function openResponseData(database: Database): Promise<ResponseData> {
  await migrate(database, 'responses', responseTables)
  return new ResponseData(database)
}

export class ResponseData implements TenantData {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async deleteTenant({ tenant }: Pick<DataDeletion, 'tenant'>): Promise<DeletedCounts> {
    const id = toStorableId(tenant)
    return {
      responses: await this.#deleteRows('responses', id),
      conversations: await this.#deleteRows('conversations', id),
    }
  }

  async hasCallsBefore(tenant: string, time: number): Promise<boolean> {
    const id = toStorableId(tenant)
    const found = await this.#database.query(
      `SELECT 1 AS found FROM modelmount_responses WHERE tenant = ? AND created_at <= ?
       UNION ALL SELECT 1 AS found FROM modelmount_conversations WHERE tenant = ? AND created_at <= ? LIMIT 1`,
      [id, time, id, time],
    )
    return found.length > 0
  }

  async #deleteRows(table: 'responses' | 'conversations', tenant: string): Promise<number> {
    for (let count = 0; ; ) {
      const rows = await this.#database.transaction(({ query }) =>
        deleteEntries({ query }, table, `tenant = ?`, [tenant]),
      )
      if (rows === 0) return count
      count += rows
    }
  }
}

const batchSize = 200

/**
 * Deletes some entries, the least recently used ones first, with the items of conversations. Returns their number.
 *
 * @param condition SQL
 */
export async function deleteEntries(
  { query }: Pick<Database, 'query'>,
  table: 'responses' | 'conversations',
  condition: string,
  parameters: readonly (string | number)[],
): Promise<number> {
  const rows = await query<{ readonly id: string }>(
    `DELETE FROM modelmount_${table} WHERE id IN
       (SELECT id FROM modelmount_${table} WHERE ${condition} ORDER BY used_at LIMIT ${batchSize}) RETURNING id`,
    parameters,
  )
  if (table === 'conversations')
    for (const { id } of rows)
      await query('DELETE FROM modelmount_conversation_items WHERE conversation = ?', [id])
  return rows.length
}
