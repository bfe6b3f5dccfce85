/** Rows of single calls go when they are old; their sums by day stay. */
import type { Database } from '../../storage/database.ts'

export class Retention {
  readonly #database: Database
  readonly #retentionMs: number
  readonly #onError: (cause: unknown) => void
  #nextAt = 0
  #pruning: Promise<void> = Promise.resolve()
  #isClosed = false

  /** @param retentionMs infinite: for ever */
  constructor(database: Database, retentionMs: number, onError: (cause: unknown) => void) {
    this.#database = database
    this.#retentionMs = retentionMs
    this.#onError = onError
  }

  /** The first time, and then once an hour, it removes what is too old. Nobody waits for it. */
  onWritten(at: number): void {
    if (at < this.#nextAt || !Number.isFinite(this.#retentionMs)) return
    this.#nextAt = at + pruneEveryMs
    this.#pruning = this.#pruning.then(() => this.#prune(at - this.#retentionMs)).catch(this.#onError)
  }

  /** Waits for what is on its way. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#pruning
  }

  /** In batches, between which others get their turn. Other processes may do the same: each row goes once. */
  async #prune(before: number): Promise<void> {
    for (let removed = batchSize; removed === batchSize && !this.#isClosed; ) {
      const rows = await this.#database.query(
        `DELETE FROM modelmount_calls WHERE id IN
           (SELECT id FROM modelmount_calls WHERE at < ? ORDER BY at LIMIT ${batchSize}) RETURNING id`,
        [before],
      )
      removed = rows.length
    }
  }
}

const pruneEveryMs = 3_600_000
const batchSize = 500
