/** Deletes the calls over time of a tenant, and old ones of all. The sums of all callers contain no names, and remain. */
import { toStorableId } from '../../limits/demand.ts'
import type { Database } from '../../storage/database.ts'
import type { DataDeletion, DeletedCounts, TenantData } from '../tenants/tenant-data.ts'
import { dayMs, hourMs } from './traffic-recorder.ts'

export class TrafficData implements TenantData {
  readonly #database: Database
  readonly #write: () => Promise<void>

  /** @param write writes what this process has counted and not written yet */
  constructor(database: Database, write: () => Promise<void>) {
    this.#database = database
    this.#write = write
  }

  async deleteTenant({ tenant }: Pick<DataDeletion, 'tenant'>): Promise<DeletedCounts> {
    await this.#write()
    const id = toStorableId(tenant)
    let count = 0
    for (let deleted = -1; deleted !== 0; count += deleted) deleted = await this.#deleteBatch(id)
    return { trafficSums: count }
  }

  #deleteBatch(tenant: string): Promise<number> {
    return this.#database.transaction(async ({ query }) => {
      const rows = await query<{
        readonly caller: string
        readonly start: number
        readonly width_ms: number
      }>(
        `DELETE FROM modelmount_traffic WHERE (width_ms, is_total, start, caller, model) IN
           (SELECT width_ms, is_total, start, caller, model FROM modelmount_traffic
            WHERE COALESCE(tenant, caller) = ? AND is_total = 0 LIMIT ${batchSize})
         RETURNING caller, start, width_ms`,
        [tenant],
      )
      for (const { width_ms, caller, start } of rows)
        await query(
          `DELETE FROM modelmount_traffic_times
           WHERE width_ms = ? AND is_total = 0 AND caller = ? AND start = ?`,
          [width_ms, caller, start],
        )
      return rows.length
    })
  }
}

/** How long the sums of hours are kept, in ms: a little more than a week, which the console shows. */
export const hoursKeptMs = 9 * dayMs

/** Deletes the sums of hours and of days before these times, in batches. */
export async function deleteOldTraffic(
  database: Database,
  before: { readonly hours: number; readonly days: number },
  isClosed: () => boolean,
): Promise<void> {
  for (const [width, time] of [
    [hourMs, before.hours],
    [dayMs, before.days],
  ] as const)
    for (const [table, keys] of Object.entries(tables)) {
      let removed: number
      do {
        const rows = await database.query(
          `DELETE FROM ${table} WHERE (${keys}) IN
             (SELECT ${keys} FROM ${table} WHERE width_ms = ? AND start < ? LIMIT ${batchSize}) RETURNING start`,
          [width, time],
        )
        removed = rows.length
      } while (removed === batchSize && !isClosed())
    }
}

const tables = {
  modelmount_traffic: 'width_ms, is_total, start, caller, model',
  modelmount_traffic_times: 'width_ms, is_total, start, caller, model, measure, bucket',
}
const batchSize = 500
