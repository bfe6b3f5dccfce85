/** Stores each running call as a lease: a row that expires unless its process renews it. */
import type { Database, Queries } from '../storage/database.ts'
import { Leases, leaseMs, msUntilExpiry } from '../storage/leases.ts'
import type { ConcurrencyDemand } from './demand.ts'

export const runningCallTables = [
  `CREATE TABLE modelmount_limit_leases (
    id TEXT NOT NULL,
    subject TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (id, subject)
  )`,
  'CREATE INDEX modelmount_limit_leases_subject ON modelmount_limit_leases (subject)',
]

const table = {
  name: 'modelmount_limit_leases',
  columns: ['id', 'subject'],
  key: ['id', 'subject'],
  owner: 'subject',
} as const

/** The running calls of a subject. */
export interface RunningCount {
  readonly running: number
  /** Time until all of them have expired, in ms. Undefined while the process of one of them renews it. */
  readonly freeInMs: number | undefined
}

export class RunningCalls {
  /** The running calls of this process. */
  readonly leases: Leases<'id' | 'subject'>
  readonly #database: Database
  readonly #clock: () => string

  /** @param clock returns the SQL expression for the current time in milliseconds */
  constructor(database: Database, clock: () => string) {
    this.#database = database
    this.#clock = clock
    // A failed renewal is repeated at the next interval. If the database stays unavailable, the leases
    // expire, as intended.
    this.leases = new Leases(database, table, clock, () => this.leases.renew().catch(() => {}))
  }

  /** Counts the running calls by subject. The rows of the subjects must be locked. */
  async count(
    { query }: Queries,
    demands: readonly ConcurrencyDemand[],
    now: number,
  ): Promise<ReadonlyMap<string, RunningCount>> {
    if (demands.length === 0) return new Map()
    const subjects = demands.map(({ subject }) => subject)
    await this.leases.restore({ query }, subjects, now)
    const matchesSubjects = `subject IN (${demands.map(() => '?').join(', ')})`
    const counts = await query<{ subject: string; running: number; last: number }>(
      `SELECT subject, count(*) AS running, max(expires_at) AS last FROM modelmount_limit_leases
       WHERE expires_at > ? AND ${matchesSubjects} GROUP BY subject`,
      [now, ...subjects],
    )
    await this.leases.shorten({ query }, subjects, now, Math.max(...counts.map(({ last }) => last)))
    return new Map(
      counts.map(({ subject, running, last }) => [subject, { running, freeInMs: msUntilExpiry(last, now) }]),
    )
  }

  async add(
    { query }: Queries,
    id: string,
    demands: readonly ConcurrencyDemand[],
    now: number,
  ): Promise<void> {
    await query(
      `INSERT INTO modelmount_limit_leases (id, subject, expires_at) VALUES ${demands.map(() => '(?, ?, ?)').join(', ')}`,
      demands.flatMap(({ subject }) => [id, subject, now + leaseMs]),
    )
  }

  /** Renews a lease at intervals from now on. The transaction that added the lease must be committed. */
  track(id: string, demands: readonly ConcurrencyDemand[], at: number): void {
    const rows = demands.map(({ subject }) => ({ id, subject }))
    this.leases.add(id, () => rows, at + leaseMs)
  }

  async remove({ query }: Queries, id: string): Promise<void> {
    await query('DELETE FROM modelmount_limit_leases WHERE id = ?', [id])
  }

  async prune(): Promise<void> {
    await this.#database.query(`DELETE FROM modelmount_limit_leases WHERE expires_at <= ${this.#clock()}`)
  }
}
