/**
 * Stores the credit that running calls have reserved. Each reservation is a lease of one minute. The process
 * that runs the call renews this lease.
 */
import type { Database, Queries } from '../../storage/database.ts'
import { Leases, leaseMs } from '../../storage/leases.ts'

export interface ReservedCredit {
  /** Id of the call. */
  readonly id: string
  readonly caller: string
  readonly at: number
  readonly nanoUsd: number
}

const table = {
  name: 'modelmount_funds',
  columns: ['id', 'caller', 'at', 'nano_usd'],
  key: ['id'],
  owner: 'caller',
} as const

/** Leases for this process's running calls, and for its settled calls whose row is not written yet. */
export class CreditLeases {
  readonly #leases: Leases<(typeof table.columns)[number]>

  /**
   * @param clock SQL expression of the current time in milliseconds
   * @param onRenew renews the leases, and never rejects; a timer calls it while there are leases
   */
  constructor(database: Database, clock: () => string, onRenew: () => Promise<void>) {
    this.#leases = new Leases(database, table, clock, onRenew)
  }

  /**
   * Inserts a lease into the database. `add`, `remove` and `sumFor` require a transaction that has locked the
   * caller's account. Call `track` after that transaction is committed.
   */
  async add({ query }: Queries, { id, caller, at, nanoUsd }: ReservedCredit): Promise<void> {
    await query(
      'INSERT INTO modelmount_funds (id, caller, at, nano_usd, expires_at) VALUES (?, ?, ?, ?, ?)',
      [id, caller, at, nanoUsd, at + leaseMs],
    )
  }

  /**
   * Renews a lease until `untrack`.
   *
   * @param reserved undefined for a settled call without a reservation. Such a call has no lease, but the
   *   timer must run until the row of the call is written
   */
  track(id: string, reserved: ReservedCredit | undefined): void {
    if (reserved) {
      const { caller, at, nanoUsd } = reserved
      this.#leases.add(id, [{ id, caller, at, nano_usd: nanoUsd }], at + leaseMs)
    } else this.#leases.add(id, [], Number.POSITIVE_INFINITY)
  }

  /** Stops renewing a lease. Call it before `remove`. */
  untrack(id: string): Promise<void> {
    return this.#leases.release(id)
  }

  async remove({ query }: Queries, id: string): Promise<void> {
    await query('DELETE FROM modelmount_funds WHERE id = ?', [id])
  }

  /**
   * Returns the credit that a caller's calls have reserved since the time `since`, in nano-dollars. Deletes
   * expired leases first.
   */
  async sumFor(
    queries: Queries,
    caller: string,
    { now, since }: { readonly now: number; readonly since: number },
  ): Promise<number | bigint> {
    await this.#leases.restore(queries, [caller], now)
    await queries.query('DELETE FROM modelmount_funds WHERE caller = ? AND expires_at <= ?', [caller, now])
    const [sum] = await queries.query<{ reserved: number | bigint | null }>(
      'SELECT sum(nano_usd) AS reserved FROM modelmount_funds WHERE caller = ? AND at >= ?',
      [caller, since],
    )
    return sum?.reserved ?? 0
  }

  renew(): Promise<void> {
    return this.#leases.renew()
  }

  close(): void {
    this.#leases.close()
  }
}
