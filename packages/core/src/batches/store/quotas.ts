/** Limits the items that wait and the bytes that batches and files take in the database. */
import { LlmError } from '../../errors.ts'
import type { Queries } from '../../storage/database.ts'

export interface BatchQuotas {
  /** Unfinished items of one tenant. */
  readonly maxQueuedItems: number
  /** Bytes of the batches and files of one tenant, and of all tenants. */
  readonly maxBytesPerTenant: number
  readonly maxBytes: number
}

/**
 * Throws an `LlmError` `rate_limit` if the tenant has stored too much, and `overloaded` if all tenants together have. Call
 * it in the transaction that has stored more.
 */
export async function checkQuotas(
  { query }: Queries,
  tenant: string,
  { maxQueuedItems, maxBytesPerTenant, maxBytes }: BatchQuotas,
): Promise<void> {
  const [sums] = await query<Record<'items' | 'own' | 'own_files' | 'total' | 'files', number | null>>(
    `SELECT
       (SELECT sum(remaining) FROM modelmount_batches WHERE tenant = ? AND archived_at IS NULL AND ${keptCondition}) AS items,
       (SELECT sum(bytes) FROM modelmount_batches WHERE tenant = ? AND archived_at IS NULL AND ${keptCondition}) AS own,
       (SELECT sum(bytes) FROM modelmount_files WHERE tenant = ? AND batch IS NULL AND ${keptCondition}) AS own_files,
       (SELECT sum(bytes) FROM modelmount_batches WHERE archived_at IS NULL AND ${keptCondition}) AS total,
       (SELECT sum(bytes) FROM modelmount_files WHERE batch IS NULL AND ${keptCondition}) AS files`,
    [tenant, tenant, tenant],
  )
  const { items, own, own_files, total, files } = sums ?? {}
  if (Number(items ?? 0) > maxQueuedItems) throw tooManyItems(maxQueuedItems)
  if (Number(own ?? 0) + Number(own_files ?? 0) > maxBytesPerTenant) throw tooManyBytes(maxBytesPerTenant)
  if (Number(total ?? 0) + Number(files ?? 0) > maxBytes) throw storageFull()
}

/** What is deleted does not count, though its rows may still be there. A hidden batch with a worker is being written. */
const keptCondition = `(status <> 'hidden' OR worker IS NOT NULL)`
const retryAfterMs = 60_000

const tooManyItems = (max: number): LlmError =>
  new LlmError(
    'rate_limit',
    `Your batches would have more than ${max} unfinished requests. Try again when some of them have ended.`,
    { retryAfterMs },
  )

const tooManyBytes = (max: number): LlmError =>
  new LlmError(
    'rate_limit',
    `Your batches and files would take more than ${max} bytes. Delete some of them, and try again.`,
    { retryAfterMs },
  )

const storageFull = (): LlmError =>
  new LlmError('overloaded', 'The storage for batches and files is full. Try again later.', { retryAfterMs })
