/**
 * Rows that say of something that it runs, for a minute. Its process renews them for as long as it does, and puts back what others
 * took for dead; of one that has died they soon say nothing any more.
 */
import type { Database, Queries, SqlValue } from './database.ts'

export const leaseMs = 60_000
const renewEveryMs = 20_000

export interface LeaseTable<Column extends string> {
  readonly name: string
  /** All but when it `expires_at`. */
  readonly columns: readonly Column[]
  /** No two rows have the same. */
  readonly key: readonly Column[]
  /** Who counts it. */
  readonly owner: Column
}

type LeaseRow<Column extends string> = Readonly<Record<Column, SqlValue>>

interface Lease<Column extends string> {
  readonly rows: readonly LeaseRow<Column>[]
  /** As far as it is known. */
  expiresAt: number
}

export class Leases<Column extends string> {
  readonly #database: Database
  readonly #table: LeaseTable<Column>
  readonly #clock: () => string
  readonly #onRenewalDue: () => Promise<void>
  readonly #leases = new Map<string, Lease<Column>>()
  #timer: NodeJS.Timeout | undefined
  #renewing: Promise<void> | undefined
  #isClosed = false

  /**
   * @param clock an expression of SQL, in milliseconds
   * @param onRenewalDue called while there are any: renews them, and never rejects
   */
  constructor(
    database: Database,
    table: LeaseTable<Column>,
    clock: () => string,
    onRenewalDue: () => Promise<void>,
  ) {
    this.#database = database
    this.#table = table
    this.#clock = clock
    this.#onRenewalDue = onRenewalDue
  }

  /**
   * It runs from now on.
   *
   * @param rows as they were written
   */
  add(id: string, rows: readonly LeaseRow<Column>[], expiresAt: number): void {
    this.#leases.set(id, { rows, expiresAt })
    if (this.#isClosed) return
    this.#timer ??= setInterval(() => void this.#onRenewalDue(), renewEveryMs).unref()
  }

  /** From here on it may be removed: once this is resolved nothing puts it back. */
  async release(id: string): Promise<void> {
    this.#leases.delete(id)
    if (this.#leases.size === 0) this.#stopTimer()
    await this.#renewing
  }

  /** Rejects where the database is away. */
  renew(): Promise<void> {
    const renewing = (this.#renewing ?? Promise.resolve()).then(() => this.#renew())
    const settled = renewing
      .catch(() => {}) // Whoever renews hears of it.
      .finally(() => {
        if (this.#renewing === settled) this.#renewing = undefined
      })
    this.#renewing = settled
    return renewing
  }

  /**
   * Before those of some owners are counted, who have to be locked: whatever the clock says, what runs here is not over. A process that
   * slept, or could not reach the database, has not renewed them.
   */
  async restore(queries: Queries, owners: readonly SqlValue[], now: number): Promise<void> {
    const { owner } = this.#table
    const expired = [...this.#leases.values()].filter(({ expiresAt }) => expiresAt <= now)
    await this.#write(
      queries,
      expired.flatMap(({ rows }) => rows.filter((row) => owners.includes(row[owner]))),
    )
  }

  /** Renews nothing by itself any more. */
  close(): void {
    this.#isClosed = true
    this.#stopTimer()
  }

  #stopTimer(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  async #renew(): Promise<void> {
    const all = [...this.#leases.keys()]
    for (let from = 0; from < all.length; from += batchSize) {
      const ids = all.slice(from, from + batchSize)
      const leases = ids.flatMap((id) => this.#leases.get(id) ?? [])
      const expiresAt = await this.#write(
        this.#database,
        leases.flatMap(({ rows }) => rows),
      )
      for (const lease of leases) lease.expiresAt = expiresAt
    }
  }

  /** Resolves with when the first of them expires. */
  async #write(queries: Queries, rows: readonly LeaseRow<Column>[]): Promise<number> {
    if (rows.length === 0) return Number.POSITIVE_INFINITY
    const { name, columns, key } = this.#table
    const row = `(${columns.map(() => '?').join(', ')}, ${this.#clock()} + ${leaseMs})`
    const written = await queries.query<{ expires_at: number }>(
      `INSERT INTO ${name} (${columns.join(', ')}, expires_at) VALUES ${rows.map(() => row).join(', ')}
       ON CONFLICT (${key.join(', ')}) DO UPDATE SET expires_at = excluded.expires_at RETURNING expires_at`,
      rows.flatMap((row) => columns.map((column) => row[column])),
    )
    return written.reduce((first, { expires_at }) => Math.min(first, expires_at), Number.POSITIVE_INFINITY)
  }
}

/** Of leases that are renewed at once. */
const batchSize = 500
