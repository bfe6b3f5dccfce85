/**
 * Stores the running calls: the credit that each has reserved, and a note of what it has handed out. The row of a
 * call is a lease of 9 s, which the process that runs the call renews, with a current note. When the process is
 * killed, the lease expires, and another process charges what the note says (`killed-calls.ts`).
 */
import type { Database, Queries } from '../../storage/database.ts'
import { Leases, leaseMs, msUntilExpiry } from '../../storage/leases.ts'
import { NoteWriter } from './note-writer.ts'

/** A running call, or a settled call whose row is not written yet. */
export interface LeasedCall {
  /** Id of the call. */
  readonly id: string
  /** The storable ids of the caller and its tenant. */
  readonly caller: string
  readonly tenant: string
  /** When the credit was reserved, in milliseconds since 1970. 0 without a reservation. */
  readonly at: number
  /** The reserved credit. */
  readonly nanoUsd: number
  /** Returns the current note. Null before the reader has got anything. */
  readonly note: () => string | null
  /** Called when the last note is in the database. */
  readonly onNoted: () => void
  /** Whether the lease can be in the database. */
  isStored: boolean
}

const table = {
  name: 'modelmount_funds',
  columns: ['id', 'caller', 'tenant', 'at', 'nano_usd', 'note'],
  key: ['id'],
  owner: 'caller',
  changing: ['note'],
} as const

/** The credit that running calls have reserved. */
export interface ReservedSum {
  readonly nanoUsd: bigint
  /** Time until all reservations have expired, in ms. Undefined while one of them may end at any time. */
  readonly freeInMs: number | undefined
}

/** Leases for this process's running calls, and for its settled calls whose row is not written yet. */
export class CreditLeases {
  readonly notes: NoteWriter
  readonly #leases: Leases<(typeof table.columns)[number]>

  /**
   * @param clock SQL expression of the current time in milliseconds
   * @param onRenew renews the leases, and never rejects; a timer calls it while there are leases
   */
  constructor(database: Database, clock: () => string, onRenew: () => Promise<void>) {
    this.#leases = new Leases(database, table, clock, onRenew)
    this.notes = new NoteWriter((ids) => this.#leases.renew(ids))
  }

  /**
   * Inserts a lease into the database. `add`, `remove`, `restore`, `shorten` and `sumFor` require a transaction that
   * has locked the caller's account. Call `track` after that transaction is committed.
   */
  async add({ query }: Queries, { id, caller, tenant, at, nanoUsd }: LeasedCall): Promise<void> {
    await query(
      'INSERT INTO modelmount_funds (id, caller, tenant, at, nano_usd, expires_at) VALUES (?, ?, ?, ?, ?, ?)',
      [id, caller, tenant, at, nanoUsd, at + leaseMs],
    )
  }

  /** Renews a lease until `untrack`. The first renewal stores a lease that `add` has not inserted. */
  track(call: LeasedCall): void {
    const { id, caller, tenant, at, nanoUsd, onNoted } = call
    const rows = () => {
      call.isStored = true
      return [{ id, caller, tenant, at, nano_usd: nanoUsd, note: call.note() }]
    }
    const expiresAt = call.isStored && at > 0 ? at + leaseMs : Number.POSITIVE_INFINITY
    this.#leases.add(id, rows, expiresAt, onNoted)
  }

  /** Stops renewing a lease. Call it before `remove`. */
  untrack(id: string): Promise<void> {
    return this.#leases.release(id)
  }

  async remove(queries: Queries, id: string): Promise<void> {
    await queries.query('DELETE FROM modelmount_funds WHERE id = ?', [id])
  }

  /** Inserts expired leases of this process again. Call it before other leases of the caller are used. */
  restore(queries: Queries, caller: string, now: number): Promise<void> {
    return this.#leases.restore(queries, [caller], now)
  }

  /** Shortens leases that a killed process has renewed before the clock was set back. */
  shorten(queries: Queries, caller: string, now: number): Promise<void> {
    return this.#leases.shorten(queries, [caller], now)
  }

  /** Returns the credit that a caller's calls have reserved since the time `since`. */
  async sumFor(
    queries: Queries,
    caller: string,
    { now, since }: { readonly now: number; readonly since: number },
  ): Promise<ReservedSum> {
    const [sum] = await queries.query<{ reserved: number | bigint | null; last: number | null }>(
      `SELECT sum(nano_usd) AS reserved, max(expires_at) AS last FROM modelmount_funds
       WHERE caller = ? AND at >= ? AND nano_usd > 0`,
      [caller, since],
    )
    const last = sum?.last ?? now
    await this.#leases.shorten(queries, [caller], now, last)
    return { nanoUsd: BigInt(sum?.reserved ?? 0), freeInMs: msUntilExpiry(last, now) }
  }

  renew(): Promise<void> {
    return this.#leases.renew()
  }

  close(): void {
    this.#leases.close()
  }
}
