/** Deletes the batches and files of a tenant. */
import type { DataDeletion, DeletedCounts, TenantData } from '../accounts/tenants/tenant-data.ts'
import { toStorableId } from '../limits/demand.ts'
import { chunksAtOnce, deleteInParts, itemsAtOnce } from './running/lifecycle.ts'
import type { BatchDatabase } from './store/batch-rows.ts'

export class BatchData implements TenantData {
  readonly #parts: BatchDatabase

  constructor(parts: BatchDatabase) {
    this.#parts = parts
  }

  /** From now on, no item of the tenant begins or stores a result, and no upload ends. */
  async hideTenant(tenant: string): Promise<void> {
    for (const table of ['batches', 'files'])
      await this.#parts.database.query(
        `UPDATE modelmount_${table} SET status = 'hidden', worker = NULL WHERE tenant = ?`,
        [toStorableId(tenant)],
      )
  }

  async deleteTenant({ tenant }: Pick<DataDeletion, 'tenant'>): Promise<DeletedCounts> {
    const { database } = this.#parts
    const id = toStorableId(tenant)
    await this.hideTenant(tenant)
    const counts = { batches: 0, files: 0 }
    for (const one of await database.query<{ id: string }>(
      'SELECT id FROM modelmount_batches WHERE tenant = ?',
      [id],
    )) {
      await deleteInParts(this.#parts, 'modelmount_batch_items', 'batch', one.id, itemsAtOnce)
      await database.query('DELETE FROM modelmount_batches WHERE id = ?', [one.id])
      counts.batches++
    }
    for (const one of await database.query<{ id: string }>(
      'SELECT id FROM modelmount_files WHERE tenant = ?',
      [id],
    )) {
      await deleteInParts(this.#parts, 'modelmount_file_chunks', 'file', one.id, chunksAtOnce)
      await database.query('DELETE FROM modelmount_files WHERE id = ?', [one.id])
      counts.files++
    }
    return counts
  }
}
