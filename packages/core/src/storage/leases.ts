/**
 * Stores leases: rows that mark running work. The process that runs the work renews the rows, and inserts
 * them again if another process has deleted them. A row expires 9 s after its last renewal, so the work of a
 * killed process counts as running for 9 s at most.
 */
import type { Database, Queries, SqlValue } from './database.ts'

export const leaseMs = 9_000
/** Leases of earlier versions last a minute. A later expiry is of a clock that has been set back. */
export const longestLeaseMs = 60_000
const renewEveryMs = 2_000
/** A lease that was not renewed for this time belongs to a process that has ended, or that hangs. */
const silentAfterMs = 2 * renewEveryMs

/**
 * Returns the time until a lease ends by itself, in ms. Undefined while the process of the lease renews it: then
 * the lease ends with its work, whose time is unknown.
 */
export function msUntilExpiry(expiresAt: number, now: number): number | undefined {
  const leftMs = expiresAt - now
  return leftMs < leaseMs - silentAfterMs ? Math.max(0, leftMs) : undefined
}

export interface LeaseTable<Column extends string> {
  readonly name: string
  /** All columns except `expires_at`. */
  readonly columns: readonly Column[]
  /** Primary key. */
  readonly key: readonly Column[]
  /** The column that names the owner of a row, such as `caller`. Rows are counted per owner. */
  readonly owner: Column
  /** Columns whose values change while the work runs. Each renewal writes the current values. */
  readonly changing?: readonly Column[]
}

export type LeaseRow<Column extends string> = Readonly<Record<Column, SqlValue>>

interface Lease<Column extends string> {
  readonly rows: () => readonly LeaseRow<Column>[]
  readonly onRenewed: () => void
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
   * @param onRenewalDue called every 2 s while there are leases. It must call `renew` and must not reject
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
   * @param rows returns the current rows of the lease, for each renewal
   * @param expiresAt the expiry time of the rows in the database. Infinity if they are not there yet: then the
   *   next renewal inserts them
   * @param onRenewed called when the last rows are in the database
   */
  add(
    id: string,
    rows: () => readonly LeaseRow<Column>[],
    expiresAt: number,
    onRenewed: () => void = () => {},
  ): void {
    this.#leases.set(id, { rows, onRenewed, expiresAt })
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

  /**
   * Renews leases now. Rejects if the database is unavailable.
   *
   * @param select returns the ids of the leases, when earlier renewals have ended. @default all leases
   */
  renew(select: () => Iterable<string> = () => this.#leases.keys()): Promise<void> {
    const renewing = (this.#renewing ?? Promise.resolve()).then(() => this.#renew([...select()]))
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
      expired.flatMap(({ rows }) => rows().filter((row) => owners.includes(row[owner]))),
    )
  }

  /**
   * Shortens leases that last longer than a renewed one, because the clock has been set back. Leases of ended
   * processes would last for as long as the clock was ahead. The transaction must have locked the owners.
   *
   * @param last the latest expiry time of the owners' leases @default unknown
   */
  async shorten(
    queries: Queries,
    owners: readonly SqlValue[],
    now: number,
    last = Number.POSITIVE_INFINITY,
  ): Promise<void> {
    if (last <= now + longestLeaseMs) return
    const { name, owner } = this.#table
    await queries.query(
      `UPDATE ${name} SET expires_at = ? WHERE expires_at > ? AND ${owner} IN (${owners.map(() => '?').join(', ')})`,
      [now + leaseMs, now + longestLeaseMs, ...owners],
    )
    // Those of this process, too, so that `restore` knows them as expired in time.
    for (const lease of this.#leases.values())
      if (Number.isFinite(lease.expiresAt)) lease.expiresAt = Math.min(lease.expiresAt, now + leaseMs)
  }

  close(): void {
    this.#isClosed = true
    this.#stopTimer()
  }

  #stopTimer(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  async #renew(all: readonly string[]): Promise<void> {
    for (let from = 0; from < all.length; from += batchSize) {
      const ids = all.slice(from, from + batchSize)
      const leases = ids.flatMap((id) => this.#leases.get(id) ?? [])
      const expiresAt = await this.#write(
        this.#database,
        leases.flatMap(({ rows }) => rows()),
      )
      for (const lease of leases) {
        lease.expiresAt = expiresAt
        lease.onRenewed()
      }
    }
  }

  /** Inserts or renews rows, and returns the earliest time at which one expires. */
  async #write(queries: Queries, rows: readonly LeaseRow<Column>[]): Promise<number> {
    if (rows.length === 0) return Number.POSITIVE_INFINITY
    const { name, columns, key, changing = [] } = this.#table
    const updates = ['expires_at', ...changing].map((column) => `${column} = excluded.${column}`)
    const row = `(${columns.map(() => '?').join(', ')}, ${this.#clock()} + ${leaseMs})`
    const written = await queries.query<{ expires_at: number }>(
      `INSERT INTO ${name} (${columns.join(', ')}, expires_at) VALUES ${rows.map(() => row).join(', ')}
       ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${updates.join(', ')} RETURNING expires_at`,
      rows.flatMap((row) => columns.map((column) => row[column])),
    )
    return written.reduce((first, { expires_at }) => Math.min(first, expires_at), Number.POSITIVE_INFINITY)
  }
}

/** Leases per statement. */
const batchSize = 500
