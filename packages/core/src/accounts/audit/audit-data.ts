/**
 * Erases a tenant from the audit log. What happened when, and with which outcome, remains: the log must still show that
 * something was changed, and by which caller of another tenant.
 */
import type { Database } from '../../storage/database.ts'
import type { DataDeletion, DeletedCounts, TenantData } from '../tenants/tenant-data.ts'
import { erased } from './audit-log.ts'
import { toAuditedId } from './changes.ts'

export class AuditData implements TenantData {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async deleteTenant({ tenant }: Pick<DataDeletion, 'tenant'>): Promise<DeletedCounts> {
    const id = toAuditedId(tenant)
    if (id === erased) return { erasedAuditEntries: 0 }
    const ofData = await this.#erase('tenant', id, `target = '${erased}', changes = '{}'`)
    const byCallers = await this.#erase(
      'caller_tenant',
      id,
      `caller = '${erased}', key_id = NULL, key_name = NULL`,
    )
    return { erasedAuditEntries: ofData + byCallers }
  }

  /** Erases in batches, so that other queries run in between. Returns the number of entries. */
  async #erase(column: 'tenant' | 'caller_tenant', tenant: string, values: string): Promise<number> {
    for (let count = 0; ; ) {
      const rows = await this.#database.query(
        `UPDATE modelmount_audit SET ${column} = '${erased}', ${values} WHERE id IN
           (SELECT id FROM modelmount_audit WHERE ${column} = ? LIMIT ${batchSize}) RETURNING id`,
        [tenant],
      )
      if (rows.length === 0) return count
      count += rows.length
    }
  }
}

const batchSize = 200
