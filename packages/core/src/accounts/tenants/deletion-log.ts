/** The deletions of the last hour, in the database. There, other apps see them. */
import { toStorableId } from '../../limits/demand.ts'
import type { Database } from '../../storage/database.ts'
import type { DataDeletion, UsageDeletion } from './tenant-data.ts'

export interface LoggedDeletion extends DataDeletion {
  /** Changes when the tenant is deleted again. */
  readonly requestedAt: number
  /** When the stored data was deleted, in milliseconds since 1970. Undefined until then. */
  readonly finishedAt: number | undefined
  /** Time of the database. */
  readonly now: number
}

interface DeletionRow {
  readonly tenant: string
  readonly usage_deletion: UsageDeletion
  readonly requested_at: number
  readonly finished_at: number | null
  readonly now: number
}

export class DeletionLog {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  /** Adds a deletion that begins now, and returns its `requestedAt`. */
  async add({ tenant, usage }: DataDeletion): Promise<number> {
    const { clock } = this.#database
    // The time grows by at least 1 ms, so that other apps notice another deletion of the same tenant.
    const [row] = await this.#database.query<Pick<DeletionRow, 'requested_at'>>(
      `INSERT INTO modelmount_tenant_deletions (id, tenant, usage_deletion, requested_at)
       VALUES (?, ?, ?, ${clock})
       ON CONFLICT (id) DO UPDATE SET usage_deletion = excluded.usage_deletion, finished_at = NULL,
         requested_at = CASE WHEN excluded.requested_at > modelmount_tenant_deletions.requested_at
           THEN excluded.requested_at ELSE modelmount_tenant_deletions.requested_at + 1 END
       RETURNING requested_at`,
      [toStorableId(tenant), JSON.stringify(tenant), usage],
    )
    return (row as Pick<DeletionRow, 'requested_at'>).requested_at
  }

  /** Records that the stored data of the tenant is deleted. */
  async finish({ tenant }: Pick<DataDeletion, 'tenant'>): Promise<void> {
    await this.#database.query(
      `UPDATE modelmount_tenant_deletions SET finished_at = ${this.#database.clock} WHERE id = ?`,
      [toStorableId(tenant)],
    )
  }

  /**
   * Reads the deletions of the last hour, and forgets older ones: their rows name tenants. Also forgets those that
   * were written while the clock was more than an hour ahead: their time would not come for years.
   */
  async read(): Promise<readonly LoggedDeletion[]> {
    const { clock } = this.#database
    const rows = await this.#database.query<DeletionRow>(
      `SELECT tenant, usage_deletion, requested_at, finished_at, ${clock} AS now FROM modelmount_tenant_deletions`,
    )
    const recent = rows.filter(({ now, requested_at }) => Math.abs(now - requested_at) < keptMs)
    if (recent.length < rows.length)
      await this.#database.query(
        `DELETE FROM modelmount_tenant_deletions
         WHERE requested_at <= ${clock} - ${keptMs} OR requested_at >= ${clock} + ${keptMs}`,
      )
    return recent.map(({ tenant, usage_deletion, requested_at, finished_at, now }) => ({
      tenant: JSON.parse(tenant) as string,
      usage: usage_deletion,
      requestedAt: requested_at,
      finishedAt: finished_at ?? undefined,
      now,
    }))
  }
}

const keptMs = 3_600_000
