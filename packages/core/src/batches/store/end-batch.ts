/** Ends a batch whose items have all ended, and creates its result files. */
import type { Queries } from '../../storage/database.ts'
import type { ItemCounts } from '../batch-event.ts'
import type { BatchRow } from './batch-rows.ts'

/**
 * Returns how the items have ended. Does nothing, and returns undefined, if the batch has ended or is deleted. The current
 * transaction must have locked the batch.
 */
export async function endBatch(queries: Queries, id: string, clock: string): Promise<ItemCounts | undefined> {
  const [batch] = await queries.query<BatchRow>(
    `UPDATE modelmount_batches SET status = 'ended', ended_at = ${clock}, worker = NULL
     WHERE id = ? AND status IN ('validating', 'in_progress', 'canceling')
     RETURNING tenant, output_file, error_file, output_bytes, error_bytes, succeeded, errored, canceled, expired`,
    [id],
  )
  if (!batch) return undefined
  const { tenant, output_file, error_file, output_bytes, error_bytes } = batch
  const { succeeded, errored, canceled, expired } = batch
  for (const { kind, file, bytes } of [
    { kind: 'output', file: output_file, bytes: output_bytes },
    { kind: 'error', file: error_file, bytes: error_bytes },
  ])
    if (file !== null && bytes > 0)
      await queries.query(
        `INSERT INTO modelmount_files (id, tenant, purpose, filename, status, bytes, created_at, batch, kind)
         VALUES (?, ?, 'batch_output', ?, 'processed', ?, ${clock}, ?, ?)`,
        [file, tenant, `${id}_${kind}.jsonl`, bytes, id, kind],
      )
  return { succeeded, errored, canceled, expired }
}
