/**
 * The lease of this process as a worker of batches. While it is valid, no other process takes the items and the
 * unfinished batches that this process holds.
 */
import { randomUUID } from 'node:crypto'
import type { Database, Queries } from '../../storage/database.ts'
import { Leases, longestLeaseMs } from '../../storage/leases.ts'

const table = { name: 'modelmount_batch_workers', columns: ['id'], key: ['id'], owner: 'id' } as const

export class WorkerLease {
  readonly id = randomUUID()
  readonly #leases: Leases<'id'>
  /** Number of users, such as running items. */
  #users = 0
  /** Resolves when the lease is in the database. */
  #ready: Promise<void> = Promise.resolve()

  /** @param onError called when a renewal fails. It is tried again */
  constructor(database: Database, clock: () => string, onError: (cause: unknown) => void) {
    this.#leases = new Leases(database, table, clock, () => this.#leases.renew().catch(onError))
  }

  /** Runs a task while the lease is valid. */
  async hold<Result>(task: () => Promise<Result>): Promise<Result> {
    await this.acquire()
    try {
      return await task()
    } finally {
      this.release()
    }
  }

  /** Resolves when the lease is in the database. */
  async acquire(): Promise<void> {
    if (++this.#users === 1) {
      this.#leases.add(this.id, () => [{ id: this.id }], Number.POSITIVE_INFINITY)
      this.#ready = this.#leases.renew()
    }
    try {
      await this.#ready
    } catch (cause) {
      this.release()
      throw cause
    }
  }

  /** Adds users to a lease that has one. */
  share(users: number): void {
    this.#users += users
  }

  /** Stops renewing the lease when it has no users. It expires within seconds. */
  release(users = 1): void {
    this.#users -= users
    if (this.#users === 0) void this.#leases.release(this.id)
  }

  close(): void {
    this.#leases.close()
  }
}

/** SQL condition for a column with the id of a worker that is no longer valid. */
export const freeCondition = (column: string, clock: string): string =>
  // A lease of a clock that was set back would be valid for as long as the clock was ahead.
  `(${column} IS NULL OR ${column} NOT IN (SELECT id FROM modelmount_batch_workers
     WHERE expires_at > ${clock} AND expires_at <= ${clock} + ${longestLeaseMs}))`

/** Deletes expired leases. */
export async function deleteExpiredWorkers(queries: Queries, clock: string): Promise<void> {
  await queries.query(`DELETE FROM modelmount_batch_workers WHERE expires_at <= ${clock} - 60000`)
}
