/** Writes the items of a batch that is not visible yet, in transactions of bounded size. */
import { LlmError } from '../../errors.ts'
import type { Queries } from '../../storage/database.ts'
import type { NewItem } from '../batch.ts'
import type { BatchDatabase } from './batch-rows.ts'
import { toPrefixKey } from './prefix-key.ts'
import { type BatchQuotas, checkQuotas } from './quotas.ts'

interface StoredItem {
  readonly values: readonly string[]
  readonly bytes: number
}

export class ItemWriter {
  readonly #parts: BatchDatabase
  readonly #quotas: BatchQuotas
  /** The batch, and the worker that may write it. */
  readonly #owner: { readonly batch: string; readonly worker: string }
  #items: StoredItem[] = []
  #bufferedBytes = 0
  #count = 0
  readonly #models = new Set<string>()

  constructor(parts: BatchDatabase, quotas: BatchQuotas, owner: { batch: string; worker: string }) {
    this.#parts = parts
    this.#quotas = quotas
    this.#owner = owner
  }

  /** Number of items, including those that are not written yet. */
  get count(): number {
    return this.#count + this.#items.length
  }

  /** Models of the items up to now, at most 20. */
  get models(): Iterable<string> {
    return this.#models
  }

  /** Rejects like `flush`, which it calls from time to time. */
  async add({ customId, params, model, prompt }: NewItem): Promise<void> {
    const json = toJson(params)
    const bytes = Buffer.byteLength(json)
    const storedModel = toStorable(model)
    if (this.#models.size < maxModels) this.#models.add(storedModel)
    this.#items.push({
      values: [JSON.stringify(customId), json, storedModel, toPrefixKey(prompt)],
      bytes,
    })
    this.#bufferedBytes += bytes
    if (this.#items.length >= maxBufferedItems || this.#bufferedBytes >= maxBufferedBytes) await this.flush()
  }

  /**
   * Writes the items that are not written yet. Rejects with an `LlmError`: `conflict` if the batch has been deleted or
   * canceled meanwhile, and the errors of `checkQuotas`.
   */
  async flush(): Promise<void> {
    const items = this.#items
    if (items.length === 0) return
    const bytes = this.#bufferedBytes
    await this.#parts.database.transaction((queries) => this.#write(queries, items, bytes))
    this.#count += items.length
    this.#items = []
    this.#bufferedBytes = 0
  }

  async #write(queries: Queries, items: readonly StoredItem[], bytes: number): Promise<void> {
    const { batch, worker } = this.#owner
    const [row] = await queries.query<{ tenant: string }>(
      `UPDATE modelmount_batches SET total = total + ?, remaining = remaining + ?, bytes = bytes + ?
       WHERE id = ? AND worker = ? AND status IN ('hidden', 'validating') RETURNING tenant`,
      [items.length, items.length, bytes, batch, worker],
    )
    if (!row) throw batchGone()
    await checkQuotas(queries, row.tenant, this.#quotas)
    await queries.query(
      `INSERT INTO modelmount_batch_items (batch, number, custom_id, params, model, prefix, status)
       VALUES ${items.map(() => `(?, ?, ?, ?, ?, ?, 'pending')`).join(', ')}`,
      items.flatMap(({ values }, index) => [batch, this.#count + index, ...values]),
    )
  }
}

/** The row of a batch stays small, even if each of its items names another model. */
const maxModels = 20
/** One statement writes them: 6 parameters each, and SQLite allows 32,766. */
const maxBufferedItems = 200
/** Bounds the time for which one transaction keeps others from writing. */
const maxBufferedBytes = 512 * 1024

/** An infinite number, such as of the JSON text `1e999`, would become null, and an invalid item valid. */
function toJson(params: unknown): string {
  const json = JSON.stringify(params)
  if (!json.includes('null')) return json
  return JSON.stringify(params, (_key, value: unknown) =>
    typeof value === 'number' && !Number.isFinite(value) ? String(value) : value,
  )
}

/** The name only groups items, so a changed one does no harm. */
const toStorable = (model: string): string => model.slice(0, 200).toWellFormed().replaceAll('\0', '')

const batchGone = (): LlmError =>
  new LlmError('conflict', 'The batch has been canceled or deleted before it was complete.')
