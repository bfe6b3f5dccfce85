/** Takes items for this process, and stores their results. */
import type { DeferredCharge } from '../../accounts/usage/ledger.ts'
import type { Database, Queries } from '../../storage/database.ts'
import type { ActiveBatch, BatchItem, ClaimedItem } from '../batch.ts'
import type { ItemCounts } from '../batch-event.ts'
import { type BatchRow, type BatchStoreParts, toActiveBatch } from './batch-rows.ts'
import { endBatch } from './end-batch.ts'
import { type BatchQuotas, checkQuotas } from './quotas.ts'
import { freeCondition } from './worker-lease.ts'

export interface ItemResult {
  readonly outcome: 'succeeded' | 'errored'
  /** Line in the results. */
  readonly line: string
  /** What the item costs. Undefined if it costs nothing. */
  readonly charge?: DeferredCharge | undefined
}

export class ItemQueue {
  readonly #database: Database
  readonly #clock: () => string
  readonly #quotas: BatchQuotas
  readonly #worker: string
  readonly #onEvent: BatchStoreParts['onEvent']

  /** @param worker id of the lease of this process */
  constructor({ database, clock, onEvent }: BatchStoreParts, quotas: BatchQuotas, worker: string) {
    this.#onEvent = onEvent
    this.#quotas = quotas
    this.#database = database
    this.#clock = clock
    this.#worker = worker
  }

  /** Returns the oldest batches of each tenant that have items to run. */
  async listActive(): Promise<readonly ActiveBatch[]> {
    const rows = await this.#database.query<BatchRow>(
      `SELECT id, api, endpoint, tenant, caller FROM
         (SELECT id, api, endpoint, tenant, caller, created_at,
            row_number() OVER (PARTITION BY tenant ORDER BY created_at, id) AS place
          FROM modelmount_batches AS b
          WHERE status = 'in_progress' AND remaining > 0 AND EXISTS
            (SELECT 1 FROM modelmount_batch_items WHERE batch = b.id AND ${this.#dueCondition})) AS active
       WHERE place <= ${activePerTenant} ORDER BY created_at, id LIMIT ${maxActiveBatches}`,
    )
    return rows.map(toActiveBatch)
  }

  /** Items wait for a minute at most. A later time was written while the clock was ahead. */
  get #dueCondition(): string {
    const clock = this.#clock()
    return `status = 'pending' AND (not_before <= ${clock} OR not_before > ${clock} + ${maxDelayMs})`
  }

  /**
   * Takes up to `count` items of a batch, which no other process takes as long as the lease is valid. Those for one model
   * and with a common beginning come together.
   */
  async claim(batch: string, count: number): Promise<readonly ClaimedItem[]> {
    const rows = await this.#database.query<ClaimedRow>(
      // Without MATERIALIZED, PostgreSQL may select again for each row, and take more items.
      `WITH next_items AS MATERIALIZED
         (SELECT number FROM modelmount_batch_items
          WHERE batch = ? AND ${this.#dueCondition}
          ORDER BY model, prefix, number LIMIT ? ${this.#database.skipLocked})
       UPDATE modelmount_batch_items SET status = 'running', worker = ?
       WHERE batch = ? AND number IN (SELECT number FROM next_items) RETURNING number, model, prefix, crashes`,
      [batch, count, this.#worker, batch],
    )
    return rows
      .toSorted((a, b) => compare(a.model, b.model) || compare(a.prefix, b.prefix) || a.number - b.number)
      .map(({ number, crashes }) => ({ batch, number, crashes }))
  }

  /**
   * Returns undefined if the item is not to run, because its batch is deleted, canceled or expired. Then it is given back.
   */
  async read(claimed: ClaimedItem): Promise<BatchItem | undefined> {
    const { batch, number, crashes } = claimed
    const [row] = await this.#database.query<{ custom_id: string; params: string }>(
      `SELECT custom_id, params FROM modelmount_batch_items
       WHERE batch = ? AND number = ? AND worker = ? AND status = 'running' AND batch IN
         (SELECT id FROM modelmount_batches
          WHERE id = ? AND status = 'in_progress')`,
      [batch, number, this.#worker, batch],
    )
    if (!row) {
      await this.release([claimed])
      return undefined
    }
    return {
      ...{ batch, number, crashes },
      customId: JSON.parse(row.custom_id) as string,
      params: JSON.parse(row.params),
      bytes: Buffer.byteLength(row.params),
    }
  }

  /** Gives items back, so that any process can take them. */
  async release(
    items: readonly ClaimedItem[],
    { delayMs = 0, hasCrashed = false }: { readonly delayMs?: number; readonly hasCrashed?: boolean } = {},
  ): Promise<void> {
    for (const { batch, number } of items)
      await this.#database.query(
        `UPDATE modelmount_batch_items SET status = 'pending', worker = NULL, crashes = crashes + ?,
           not_before = ${this.#clock()} + ? WHERE batch = ? AND number = ? AND worker = ? AND status = 'running'`,
        [hasCrashed ? 1 : 0, Math.min(Math.ceil(delayMs), maxDelayMs), batch, number, this.#worker],
      )
  }

  /**
   * Stores the result of an item, and its charge, in one transaction. If the item has been deleted, or is no longer held
   * by this process, stores nothing and charges nothing. Rejects if the database is unavailable: try again.
   */
  async finish(item: BatchItem, { charge, ...result }: ItemResult): Promise<void> {
    const transact = (writeRow?: (queries: Queries) => Promise<void>): Promise<FinishedItem> =>
      this.#database.transaction(async (queries) => {
        const stored = await this.#store(queries, item, result)
        await writeRow?.(queries)
        return stored
      })
    try {
      const { tenant, endCounts } = await (charge ? charge.write(transact) : transact())
      const of = { batch: item.batch, tenant }
      this.#onEvent({ type: 'item', ...of, outcome: result.outcome, items: 1 })
      if (endCounts) this.#onEvent({ type: 'end', ...of, status: 'ended', counts: endCounts })
    } catch (cause) {
      if (!(cause instanceof ItemLost)) throw cause
      await charge?.discard()
    }
  }

  /** Gives back the items of workers that are no longer valid. Those of this process end or are given back anyway. */
  async reclaim(): Promise<void> {
    await this.#database.query(
      `UPDATE modelmount_batch_items SET status = 'pending', worker = NULL
       WHERE status = 'running' AND worker <> ? AND ${freeCondition('worker', this.#clock())}`,
      [this.#worker],
    )
  }

  /** Gives back the items that this process has taken, except for those that it still knows, after failed queries. */
  async giveBackUnknown(known: readonly ClaimedItem[]): Promise<void> {
    const rows = await this.#database.query<ClaimedItem>(
      `SELECT batch, number, crashes FROM modelmount_batch_items WHERE worker = ? AND status = 'running'`,
      [this.#worker],
    )
    const isKnown = ({ batch, number }: ClaimedItem): boolean =>
      known.some((one) => one.batch === batch && one.number === number)
    await this.release(rows.filter((row) => !isKnown(row)))
  }

  /** Locks the batch before the item, like all transactions. */
  async #store(
    queries: Queries,
    { batch, number, bytes }: BatchItem,
    { outcome, line }: Pick<ItemResult, 'outcome' | 'line'>,
  ): Promise<FinishedItem> {
    const lineBytes = Buffer.byteLength(line) + lineBreakBytes
    const file = outcome === 'succeeded' ? 'output_bytes' : 'error_bytes'
    const [row] = await queries.query<Pick<BatchRow, 'remaining' | 'tenant'>>(
      `UPDATE modelmount_batches SET remaining = remaining - 1, ${outcome} = ${outcome} + 1,
         ${file} = ${file} + ?, bytes = bytes + ?
       WHERE id = ? AND status IN ('in_progress', 'canceling') RETURNING remaining, tenant`,
      [lineBytes, lineBytes - bytes, batch],
    )
    const stored = await queries.query(
      `UPDATE modelmount_batch_items SET status = ?, result = ?, params = NULL, worker = NULL
       WHERE batch = ? AND number = ? AND worker = ? AND status = 'running' RETURNING number`,
      [outcome, line, batch, number, this.#worker],
    )
    if (!row || stored.length === 0) throw new ItemLost()
    // Short lines are far below the limit together, and the sums take time.
    if (lineBytes > largeLineBytes) await checkQuotas(queries, row.tenant, this.#quotas)
    const endCounts = row.remaining === 0 ? await endBatch(queries, batch, this.#clock()) : undefined
    return { tenant: row.tenant, endCounts }
  }
}

interface FinishedItem {
  readonly tenant: string
  /** Set if the batch has ended with this item. */
  readonly endCounts: ItemCounts | undefined
}

/** Rolls back the transaction of an item that this process no longer holds. */
class ItemLost extends Error {}

interface ClaimedRow {
  readonly number: number
  readonly model: string
  readonly prefix: string
  readonly crashes: number
}

/** Bounds the query. Further batches come when these have ended. */
const maxActiveBatches = 1_000
const activePerTenant = 4
const maxDelayMs = 60_000
const largeLineBytes = 16 * 1024
const lineBreakBytes = 1

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
