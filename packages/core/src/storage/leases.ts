/**
 * Stores leases: rows that mark running work. The process that runs the work renews the rows, and inserts
 * them again if another process has deleted them. A row expires a minute after its last renewal.
 */
import type { Database, Queries, SqlValue } from './database.ts'

export const leaseMs = 60_000
const renewEveryMs = 20_000

export interface LeaseTable<Column extends string> {
  readonly name: string
  /** All columns except `expires_at`. */
  readonly columns: readonly Column[]
  /** Primary key. */
  readonly key: readonly Column[]
  /** The column that names the owner of a row, such as `caller`. Rows are counted per owner. */
  readonly owner: Column
}

type LeaseRow<Column extends string> = Readonly<Record<Column, SqlValue>>

interface Lease<Column extends string> {
  readonly rows: readonly LeaseRow<Column>[]
  /** Expiry time that the last successful renewal set, in ms by the database's clock. */
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
   * @param clock returns the SQL expression for the current time in milliseconds
   * @param onRenewalDue called every 20 s while there are leases. It must call `renew` and must not reject
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
   * Renews a lease until `release`.
   *
   * @param rows the rows of the lease, which are already in the database
   */
  add(id: string, rows: readonly LeaseRow<Column>[], expiresAt: number): void {
    this.#leases.set(id, { rows, expiresAt })
    if (this.#isClosed) return
    this.#timer ??= setInterval(() => void this.#onRenewalDue(), renewEveryMs).unref()
  }

  /**
   * Stops renewing a lease. When this resolves, no renewal can insert the rows again, so they can be deleted.
   */
  async release(id: string): Promise<void> {
    this.#leases.delete(id)
    if (this.#leases.size === 0) this.#stopTimer()
    await this.#renewing
  }

  /** Renews all leases now. Rejects if the database is unavailable. */
  renew(): Promise<void> {
    const renewing = (this.#renewing ?? Promise.resolve()).then(() => this.#renew())
    const settled = renewing
      .catch(() => {}) // The caller of `renew` gets the error.
      .finally(() => {
        if (this.#renewing === settled) this.#renewing = undefined
      })
    this.#renewing = settled
    return renewing
  }

  /**
   * Inserts expired rows of this process again. Call it before the rows of `owners` are counted, in the
   * transaction that has locked these owners. Rows of running work expire if the process sleeps or cannot
   * reach the database.
   */
  async restore(queries: Queries, owners: readonly SqlValue[], now: number): Promise<void> {
    const { owner } = this.#table
    const expired = [...this.#leases.values()].filter(({ expiresAt }) => expiresAt <= now)
    await this.#write(
      queries,
      expired.flatMap(({ rows }) => rows.filter((row) => owners.includes(row[owner]))),
    )
  }

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

  /** Inserts or renews rows, and returns the earliest time at which one expires. */
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

/** Leases per statement. */
const batchSize = 500
