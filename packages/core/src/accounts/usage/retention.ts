/** Deletes old rows of calls and of the audit log, and merges old sums of days into sums of months. */
import type { Database } from '../../storage/database.ts'
import { deleteOldTraffic, hoursKeptMs } from '../traffic/traffic-data.ts'
import { mergeIntoMonths } from './month-sums.ts'
import { longestAgeMs, observeClock } from './retention-clock.ts'

export interface RetentionOptions {
  /** Returns the SQL expression of the current time in milliseconds. */
  readonly clock: () => string
  /** Age at which rows of calls are deleted. If infinite, they are never deleted. */
  readonly retentionMs: number
  readonly onError: (cause: unknown) => void
}

export class Retention {
  readonly #database: Database
  readonly #options: RetentionOptions
  /** Without calls, the timer observes the clock: otherwise the time would not count. */
  readonly #timer: NodeJS.Timeout
  #startedAt: number | undefined
  #running: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(database: Database, options: RetentionOptions) {
    this.#database = database
    this.#options = options
    this.#timer = setInterval(() => void this.run(), everyMs).unref()
  }

  /**
   * Starts in the background, unless it has started in the last hour.
   *
   * @param at time of the last call
   */
  onWritten(at: number): void {
    if (this.#startedAt !== undefined && Math.abs(at - this.#startedAt) < everyMs) return
    this.#startedAt = at
    void this.run()
  }

  /** Deletes and merges what is due. Runs one after the other. Never rejects. */
  run(): Promise<void> {
    this.#running = this.#running.then(() => this.#run()).catch(this.#options.onError)
    return this.#running
  }

  /** Waits for the current batch. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#timer)
    await this.#running
  }

  async #run(): Promise<void> {
    const { clock, retentionMs } = this.#options
    const horizonOf = await observeClock(this.#database, clock())
    if (Number.isFinite(retentionMs)) await this.#deleteRows('modelmount_calls', horizonOf(retentionMs))
    const yearAgo = horizonOf(longestAgeMs)
    await this.#deleteRows('modelmount_audit', yearAgo)
    const traffic = { hours: horizonOf(hoursKeptMs), days: yearAgo }
    await deleteOldTraffic(this.#database, traffic, () => this.#isClosed)
    await mergeIntoMonths(this.#database, yearAgo, () => this.#isClosed)
  }

  /** Deletes in batches, so that other queries run in between. Several processes may do this at once. */
  async #deleteRows(table: 'modelmount_calls' | 'modelmount_audit', before: number): Promise<void> {
    let removed: number
    do {
      const rows = await this.#database.query(
        `DELETE FROM ${table} WHERE id IN
           (SELECT id FROM ${table} WHERE at < ? ORDER BY at LIMIT ${batchSize}) RETURNING id`,
        [before],
      )
      removed = rows.length
    } while (removed === batchSize && !this.#isClosed)
  }
}

const everyMs = 3_600_000
const batchSize = 500
