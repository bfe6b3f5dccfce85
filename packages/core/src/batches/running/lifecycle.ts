/**
 * Brings batches to their end: cancels and expires items, deletes old results and files, and what crashed processes have
 * left. All processes with the database do this, so each step can run twice at the same time.
 */
import { observeClock } from '../../accounts/usage/retention-clock.ts'
import type { BatchApis } from '../batch-apis.ts'
import type { BatchDatabase, BatchRow } from '../store/batch-rows.ts'
import type { BatchStore } from '../store/batch-store.ts'
import { resultCondition } from '../store/batch-store.ts'
import { freeCondition } from '../store/worker-lease.ts'

export interface LifecycleOptions {
  /** How long results are kept, from the creation of the batch, in ms. */
  readonly retentionMs: number
  /** Called when work for one batch fails. It is tried again. */
  readonly onError: (cause: unknown) => void
}

type DueBatch = Pick<BatchRow, 'id' | 'api' | 'status' | 'created_at' | 'expires_at'>

export class Lifecycle {
  readonly #parts: BatchDatabase
  readonly #store: BatchStore
  readonly #apis: BatchApis
  readonly #options: LifecycleOptions
  /** Set to end the current work early. */
  isClosed = false

  constructor(parts: BatchDatabase, store: BatchStore, apis: BatchApis, options: LifecycleOptions) {
    this.#parts = parts
    this.#store = store
    this.#apis = apis
    this.#options = options
  }

  /**
   * Does what is due in seconds: ends the items of canceled and expired batches, and deletes hidden batches and files.
   * Returns whether there are batches that have not ended.
   */
  async runOften(): Promise<boolean> {
    const { clock, database } = this.#parts
    const due = await database.query<DueBatch>(
      `SELECT id, api, status, created_at, expires_at FROM modelmount_batches
       WHERE status = 'canceling' OR (status IN ('validating', 'in_progress') AND expires_at <= ${clock()})
         OR (status = 'hidden' AND ${freeCondition('worker', clock())})
       ORDER BY created_at LIMIT ${batchesAtOnce}`,
    )
    const expired = due.filter(({ status }) => status === 'validating' || status === 'in_progress')
    const horizonOf = expired.length > 0 ? await observeClock(database, clock()) : undefined
    for (const batch of due)
      await this.#attempt(async () => {
        if (batch.status === 'hidden') await this.#deleteHidden(batch.id)
        else if (batch.status === 'canceling') await this.#endItems(batch, 'canceled')
        // The clock may be years ahead for a while, so the age counts that was observed.
        else if (horizonOf && batch.created_at <= horizonOf(batch.expires_at - batch.created_at))
          await this.#endItems(batch, 'expired')
      })
    await this.#deleteHiddenFiles()
    const open = await database.query(
      `SELECT id FROM modelmount_batches WHERE status IN ('validating', 'in_progress', 'canceling') LIMIT 1`,
    )
    return open.length > 0
  }

  /** What fails for one batch is tried again later. It does not keep the others from their end. */
  async #attempt(work: () => Promise<void>): Promise<void> {
    if (this.isClosed) return
    try {
      await work()
    } catch (cause) {
      if (!this.isClosed) this.#options.onError(cause)
    }
  }

  /** Does what is due in hours: deletes old results, and hides old files. */
  async runSeldom(): Promise<void> {
    const { clock, database } = this.#parts
    const horizonOf = await observeClock(database, clock())
    const { retentionMs } = this.#options
    if (Number.isFinite(retentionMs)) {
      const old = await database.query<{ id: string }>(
        `SELECT id FROM modelmount_batches
         WHERE status IN ('ended', 'failed') AND archived_at IS NULL AND created_at < ? LIMIT ${batchesAtOnce}`,
        [horizonOf(retentionMs)],
      )
      for (const { id } of old) await this.#attempt(() => this.#archive(id))
    }
    const unfinished = await database.query<{ id: string }>(
      `SELECT id FROM modelmount_batches AS b WHERE archived_at IS NOT NULL
         AND EXISTS (SELECT 1 FROM modelmount_batch_items WHERE batch = b.id) LIMIT ${batchesAtOnce}`,
      [],
      { isSlow: true },
    )
    for (const { id } of unfinished) await this.#attempt(() => this.#deleteItems(id))
    const files = await database.query<{ id: string; created_at: number; expires_at: number }>(
      `SELECT id, created_at, expires_at FROM modelmount_files
       WHERE expires_at <= ${clock()} AND status <> 'hidden' LIMIT ${batchesAtOnce}`,
    )
    for (const { id, created_at, expires_at } of files)
      if (created_at <= horizonOf(expires_at - created_at))
        await database.query(`UPDATE modelmount_files SET status = 'hidden', worker = NULL WHERE id = ?`, [
          id,
        ])
  }

  /** Deletes the content of files that are deleted, expired, or whose upload has ended before its end. */
  async #deleteHiddenFiles(): Promise<void> {
    const { clock, database } = this.#parts
    const files = await database.query<{ id: string; batch: string | null; kind: 'output' | 'error' }>(
      `SELECT id, batch, kind FROM modelmount_files
       WHERE status IN ('hidden', 'uploading') AND ${freeCondition('worker', clock())} LIMIT ${batchesAtOnce}`,
    )
    for (const { id, batch, kind } of files)
      await this.#attempt(async () => {
        // From now on, an upload whose process was only asleep cannot end.
        const taken = await database.query(
          `UPDATE modelmount_files SET status = 'hidden', worker = NULL
           WHERE id = ? AND status IN ('hidden', 'uploading') AND ${freeCondition('worker', clock())} RETURNING id`,
          [id],
        )
        if (taken.length === 0) return
        if (batch === null)
          await deleteInParts(this.#parts, 'modelmount_file_chunks', 'file', id, chunksAtOnce)
        else await this.#deleteResults(batch, kind)
        await database.query('DELETE FROM modelmount_files WHERE id = ?', [id])
      })
  }

  /** Deletes the items whose results a file has contained. */
  async #deleteResults(batch: string, kind: 'output' | 'error'): Promise<void> {
    await deleteInParts(
      this.#parts,
      'modelmount_batch_items',
      'batch',
      batch,
      itemsAtOnce,
      resultCondition[kind],
    )
    // The lines of items that did not run are in no row, so `bytes` does not contain them.
    const left = kind === 'output' ? 'bytes - output_bytes' : 'output_bytes'
    await this.#parts.database.query(
      `UPDATE modelmount_batches SET bytes = ${left}, ${kind}_bytes = 0 WHERE id = ? AND archived_at IS NULL`,
      [batch],
    )
  }

  async #endItems({ id, api }: DueBatch, outcome: 'canceled' | 'expired'): Promise<void> {
    const { renderNotRun } = await this.#apis.of(api)
    const lineBytesOf = (item: { number: number; customId: string }): number =>
      Buffer.byteLength(renderNotRun({ batch: id, ...item }, outcome)) + 1
    while ((await this.#store.endPending(id, outcome, lineBytesOf)) > 0);
  }

  /** Deletes the items of a batch, which itself remains. */
  async #archive(id: string): Promise<void> {
    const { clock, database } = this.#parts
    await database.transaction(async ({ query }) => {
      await query('DELETE FROM modelmount_files WHERE batch = ?', [id])
      await query(`UPDATE modelmount_batches SET archived_at = ${clock()}, bytes = 0 WHERE id = ?`, [id])
    })
    await this.#deleteItems(id)
  }

  #deleteItems(id: string): Promise<void> {
    return deleteInParts(this.#parts, 'modelmount_batch_items', 'batch', id, itemsAtOnce)
  }

  async #deleteHidden(id: string): Promise<void> {
    const { clock, database } = this.#parts
    // From now on, a process that was only asleep cannot write or publish the batch.
    const taken = await database.query(
      `UPDATE modelmount_batches SET worker = NULL
       WHERE id = ? AND status = 'hidden' AND ${freeCondition('worker', clock())} RETURNING id`,
      [id],
    )
    if (taken.length === 0) return
    await this.#deleteItems(id)
    await database.query('DELETE FROM modelmount_batches WHERE id = ?', [id])
  }
}

/** Deletes rows in parts, so that other queries run in between. */
export async function deleteInParts(
  { database }: BatchDatabase,
  table: 'modelmount_batch_items' | 'modelmount_file_chunks',
  column: 'batch' | 'file',
  id: string,
  atOnce: number,
  condition = 'number >= 0',
): Promise<void> {
  for (;;) {
    const deleted = await database.query(
      `DELETE FROM ${table} WHERE ${column} = ? AND number IN
         (SELECT number FROM ${table} WHERE ${column} = ? AND ${condition} ORDER BY number LIMIT ${atOnce}) RETURNING number`,
      [id, id],
    )
    if (deleted.length < atOnce) return
  }
}

const batchesAtOnce = 1_000
export const itemsAtOnce = 500
export const chunksAtOnce = 16
