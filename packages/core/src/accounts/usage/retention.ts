/** Deletes old rows of calls. The sums by day are kept. */
import type { Database } from '../../storage/database.ts'

export class Retention {
  readonly #database: Database
  readonly #retentionMs: number
  readonly #onError: (cause: unknown) => void
  #nextAt = 0
  #pruning: Promise<void> = Promise.resolve()
  #isClosed = false

  /** @param retentionMs if infinite, rows are never deleted */
  constructor(database: Database, retentionMs: number, onError: (cause: unknown) => void) {
    this.#database = database
    this.#retentionMs = retentionMs
    this.#onError = onError
  }

  /** Deletes old rows in the background, at most once an hour. */
  onWritten(at: number): void {
    if (at < this.#nextAt || !Number.isFinite(this.#retentionMs)) return
    this.#nextAt = at + pruneEveryMs
    this.#pruning = this.#pruning.then(() => this.#prune(at - this.#retentionMs)).catch(this.#onError)
  }

  /** Waits for a running deletion. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#pruning
  }

  /** Deletes in batches, so that other queries run in between. Several processes may do this at once. */
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
