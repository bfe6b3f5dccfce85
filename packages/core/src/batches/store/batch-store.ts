/** Stores batches: creates them, lists them, and changes their status. */
import { nanoid } from 'nanoid'
import { type Caller, tenantOf } from '../../accounts/auth/caller.ts'
import { invalidRequest, LlmError } from '../../errors.ts'
import { toStorableId } from '../../limits/demand.ts'
import type { Queries, SqlValue } from '../../storage/database.ts'
import type { Batch, BatchFormat, BatchProblem, BatchStatus, ItemOutcome } from '../batch.ts'
import type { BatchPage, BatchQuery } from '../batch-actions.ts'
import {
  type BatchRow,
  type BatchStoreParts,
  batchColumns,
  readClock,
  toBatch,
  toKnownId,
} from './batch-rows.ts'
import { endBatch } from './end-batch.ts'

export interface NewBatch {
  readonly id: string
  readonly format: BatchFormat
  readonly endpoint: string
  /** Undefined for the app itself. */
  readonly caller: Caller | undefined
  readonly expiresAfterMs: number
  /** A batch that is read from a file is `validating` until then. Others are `hidden`. */
  readonly inputFileId?: string | undefined
  readonly metadata?: Readonly<Record<string, string>> | undefined
  readonly hasResultFiles: boolean
}

/** Which batches a caller sees. */
export interface BatchScope {
  /** @default the batches of all tenants */
  readonly tenant?: string | undefined
  readonly format?: BatchFormat | undefined
  readonly status?: BatchStatus | undefined
}

/** A line of the results, in the order of the items. `line` is null for an item that did not run. */
export interface ResultRow {
  readonly number: number
  readonly custom_id: string
  readonly status: ItemOutcome
  readonly result: string | null
}

export class BatchStore {
  readonly #parts: BatchStoreParts

  constructor(parts: BatchStoreParts) {
    this.#parts = parts
  }

  /** @param worker holds a hidden batch while it writes the items. Undefined if the batch is read from a file */
  async create(given: NewBatch, worker: string | undefined): Promise<Batch> {
    const { database } = this.#parts
    const { id, format, endpoint, caller, expiresAfterMs, inputFileId, metadata, hasResultFiles } = given
    const file = (): string | null => (hasResultFiles ? `file-${nanoid()}` : null)
    const values: Readonly<Record<string, SqlValue>> = {
      ...{ id, api: format, endpoint, tenant: toStorableId(tenantOf(caller)) },
      caller: JSON.stringify(caller ?? null),
      status: inputFileId === undefined ? 'hidden' : 'validating',
      worker: worker ?? null,
      input_file: inputFileId ?? null,
      output_file: file(),
      error_file: file(),
      metadata: metadata ? JSON.stringify(metadata) : null,
    }
    const now = await readClock(this.#parts)
    const all = { ...values, created_at: now, expires_at: now + Math.round(expiresAfterMs) }
    const [row] = await database.query<BatchRow>(
      `INSERT INTO modelmount_batches (${Object.keys(all).join(', ')})
       VALUES (${Object.keys(all)
         .map(() => '?')
         .join(', ')}) RETURNING ${batchColumns}`,
      Object.values(all),
    )
    return toBatch(row as BatchRow, false)
  }

  /** Starts a batch whose items are all written. Rejects with `conflict` if it has been deleted or canceled meanwhile. */
  async publish(id: string, worker: string, models: Iterable<string>): Promise<Batch> {
    const { clock, database } = this.#parts
    const [row] = await database.query<BatchRow>(
      `UPDATE modelmount_batches SET status = 'in_progress', started_at = ${clock()}, worker = NULL, models = ?
       WHERE id = ? AND worker = ? AND status IN ('hidden', 'validating') RETURNING ${batchColumns}`,
      [JSON.stringify([...models]), id, worker],
    )
    if (!row) throw new LlmError('conflict', 'The batch has been canceled or deleted before it was complete.')
    return toBatch(row, false)
  }

  /** Ends a batch whose file is invalid. Returns `false` if the batch has been canceled or deleted meanwhile. */
  async fail(id: string, worker: string, problems: readonly BatchProblem[]): Promise<boolean> {
    const { clock, database } = this.#parts
    const [failed] = await database.query<Pick<BatchRow, 'tenant'>>(
      `UPDATE modelmount_batches SET status = 'failed', ended_at = ${clock()}, worker = NULL, problems = ?,
         total = 0, remaining = 0, bytes = 0 WHERE id = ? AND worker = ? AND status = 'validating' RETURNING tenant`,
      [JSON.stringify(problems), id, worker],
    )
    if (!failed) return false
    this.#parts.onEvent({ type: 'end', batch: id, tenant: failed.tenant, status: 'failed', counts: noItems })
    return true
  }

  /** Rejects with an `LlmError` `not_found`. */
  async get(id: string, scope: BatchScope): Promise<Batch> {
    return toBatch(await this.#find(this.#parts.database, id, scope), isApp(scope))
  }

  async list(
    scope: BatchScope,
    { limit = 20, after, before }: Pick<BatchQuery, 'limit' | 'after' | 'before'>,
  ): Promise<BatchPage> {
    const { database } = this.#parts
    const id = after ?? before
    // The entry may have been deleted. The page is then empty, as in the list of models.
    // Its status may have changed since the previous page.
    const bound =
      id === undefined
        ? undefined
        : await this.#find(database, id, { ...scope, status: undefined }).catch(() => undefined)
    if (id !== undefined && !bound) return { batches: [], hasMore: false }
    const isBackwards = before !== undefined
    const conditions = toConditions(scope)
    if (bound)
      conditions.push({
        sql: `(created_at, id) ${isBackwards ? '>' : '<'} (?, ?)`,
        values: [bound.created_at, bound.id],
      })
    const order = isBackwards ? 'created_at, id' : 'created_at DESC, id DESC'
    const rows = await database.query<BatchRow>(
      `SELECT ${batchColumns} FROM modelmount_batches WHERE ${conditions.map(({ sql }) => sql).join(' AND ')}
       ORDER BY ${order} LIMIT ?`,
      [...conditions.flatMap(({ values }) => values), limit + 1],
    )
    const page = rows.slice(0, limit).map((row) => toBatch(row, isApp(scope)))
    return { batches: isBackwards ? page.reverse() : page, hasMore: rows.length > limit }
  }

  /** Cancels a batch. Items that run already end. Returns a batch that has ended unchanged. Rejects with `not_found`. */
  async cancel(id: string, scope: BatchScope): Promise<Batch> {
    const { clock, database } = this.#parts
    return database.transaction(async (queries) => {
      const found = await this.#find(queries, id, scope)
      await queries.query(
        `UPDATE modelmount_batches SET status = 'canceling', cancel_at = ${clock()}, worker = NULL
         WHERE id = ? AND status IN ('validating', 'in_progress')`,
        [found.id],
      )
      return toBatch(await this.#find(queries, id, scope), isApp(scope))
    })
  }

  /**
   * Hides a batch, whose items and result files are then deleted in the background. Rejects with `not_found`, and with
   * `invalid_request` if the batch has not ended.
   */
  async delete(id: string, scope: BatchScope): Promise<void> {
    await this.#parts.database.transaction(async (queries) => {
      const found = await this.#find(queries, id, scope)
      const hidden = await queries.query(
        `UPDATE modelmount_batches SET status = 'hidden', worker = NULL
         WHERE id = ? AND status IN ('ended', 'failed') RETURNING id`,
        [found.id],
      )
      if (hidden.length === 0)
        throw invalidRequest('The batch has not ended. Cancel it, and delete it when it has ended.')
      await queries.query('DELETE FROM modelmount_files WHERE batch = ?', [found.id])
    })
  }

  /** Hides a batch of any status, for a deletion of its tenant or after a failure. */
  async hide(id: string): Promise<void> {
    await this.#parts.database.query(
      `UPDATE modelmount_batches SET status = 'hidden', worker = NULL WHERE id = ?`,
      [id],
    )
  }

  /**
   * Yields pages of results in the order of the items. With `kind`, yields those of one result file.
   *
   * @param kind `output` for succeeded items, `error` for all others @default both
   */
  async *results(id: string, kind?: 'output' | 'error'): AsyncGenerator<readonly ResultRow[]> {
    const condition = kind ? resultCondition[kind] : `status NOT IN ('pending', 'running')`
    let limit = firstResults
    for (let after = -1; ; ) {
      const rows = await this.#parts.database.query<ResultRow>(
        `SELECT number, custom_id, status, result FROM modelmount_batch_items
         WHERE batch = ? AND number > ? AND ${condition} ORDER BY number LIMIT ?`,
        [id, after, limit],
      )
      if (rows.length > 0) yield rows
      if (rows.length < limit) return
      after = rows.at(-1)?.number as number
      const characters = rows.reduce((sum, { result }) => sum + (result?.length ?? 0), 1)
      limit = Math.min(maxResults, Math.max(1, Math.floor((rows.length * pageCharacters) / characters)))
    }
  }

  /**
   * Ends up to 500 items that have not begun. Returns their number. When no item is left, ends the batch.
   *
   * @param lineBytesOf size of an item's line in the results, in bytes
   */
  async endPending(
    id: string,
    outcome: 'canceled' | 'expired',
    lineBytesOf: (item: { number: number; customId: string }) => number,
  ): Promise<number> {
    const { clock, database, onEvent } = this.#parts
    const { tenant, count, endCounts } = await database.transaction(async (queries) => {
      const [locked] = await queries.query<Pick<BatchRow, 'tenant'>>(
        'UPDATE modelmount_batches SET total = total WHERE id = ? RETURNING tenant',
        [id],
      )
      if (!locked) return { tenant: '', count: 0, endCounts: undefined }
      const { tenant } = locked
      const items = await queries.query<{ number: number; custom_id: string; bytes: number }>(
        `SELECT number, custom_id, octet_length(params) AS bytes FROM modelmount_batch_items
         WHERE batch = ? AND status = 'pending' ORDER BY number LIMIT ${endedAtOnce} ${database.skipLocked}`,
        [id],
      )
      const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0)
      const freed = sum(items.map(({ bytes }) => bytes))
      const lines = sum(
        items.map(({ number, custom_id }) => lineBytesOf({ number, customId: JSON.parse(custom_id) })),
      )
      if (items.length > 0)
        await queries.query(
          `UPDATE modelmount_batch_items SET status = ?, params = NULL
           WHERE batch = ? AND number IN (${items.map(() => '?').join(', ')})`,
          [outcome, id, ...items.map(({ number }) => number)],
        )
      const [row] = await queries.query<Pick<BatchRow, 'remaining'>>(
        `UPDATE modelmount_batches SET remaining = remaining - ?, ${outcome} = ${outcome} + ?,
           error_bytes = error_bytes + ?, bytes = bytes - ? WHERE id = ? RETURNING remaining`,
        [items.length, items.length, lines, freed, id],
      )
      const isOver = items.length === 0 ? await this.#isEmpty(queries, id) : row?.remaining === 0
      const endCounts = isOver ? await endBatch(queries, id, clock()) : undefined
      return { tenant, count: items.length, endCounts }
    })
    if (count > 0) onEvent({ type: 'item', batch: id, tenant, outcome, items: count })
    if (endCounts) onEvent({ type: 'end', batch: id, tenant, status: 'ended', counts: endCounts })
    return count
  }

  /** Whether no item of the batch is left, whatever its counts say: a process may have been killed while it wrote them. */
  async #isEmpty(queries: Queries, id: string): Promise<boolean> {
    const left = await queries.query(
      `SELECT number FROM modelmount_batch_items WHERE batch = ? AND status IN ('pending', 'running') LIMIT 1`,
      [id],
    )
    if (left.length > 0) return false
    await queries.query('UPDATE modelmount_batches SET remaining = 0 WHERE id = ?', [id])
    return true
  }

  async #find(queries: Queries, id: string, scope: BatchScope): Promise<BatchRow> {
    const conditions = [{ sql: 'id = ?', values: [toKnownId(id)] }, ...toConditions(scope)]
    const [row] = await queries.query<BatchRow>(
      `SELECT ${batchColumns} FROM modelmount_batches WHERE ${conditions.map(({ sql }) => sql).join(' AND ')}`,
      conditions.flatMap(({ values }) => values),
    )
    if (!row) throw new LlmError('not_found', 'Batch not found.')
    return row
  }
}

/** SQL condition for the items whose results are in a result file. */
export const resultCondition = {
  output: `status = 'succeeded'`,
  error: `status IN ('errored', 'canceled', 'expired')`,
} as const

interface Condition {
  readonly sql: string
  readonly values: readonly SqlValue[]
}

const isApp = ({ tenant }: BatchScope): boolean => tenant === undefined

const toConditions = ({ tenant, format, status }: BatchScope): Condition[] => [
  { sql: `status <> 'hidden'`, values: [] },
  ...(tenant === undefined ? [] : [{ sql: 'tenant = ?', values: [toStorableId(tenant)] }]),
  ...(format === undefined ? [] : [{ sql: 'api = ?', values: [format] }]),
  ...(status === undefined ? [] : [{ sql: 'status = ?', values: [status] }]),
]

const noItems = { succeeded: 0, errored: 0, canceled: 0, expired: 0 }
const endedAtOnce = 500
/** A page of results has as many as make up this number of characters, according to the page before. */
const pageCharacters = 1_000_000
const firstResults = 8
const maxResults = 500
