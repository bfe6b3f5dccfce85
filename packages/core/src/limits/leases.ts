/**
 * Which calls run at the same time, in the database. Each is a lease of a minute that its process renews: when that dies, its calls are
 * soon counted no more.
 */
import type { Database, Queries } from '../storage/database.ts'
import type { CrowdDemand } from './demand.ts'

export const leaseTables = [
  `CREATE TABLE modelmount_limit_leases (
    id TEXT NOT NULL,
    subject TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (id, subject)
  )`,
  'CREATE INDEX modelmount_limit_leases_subject ON modelmount_limit_leases (subject)',
]

const leaseMs = 60_000
const renewEveryMs = 20_000

export class Leases {
  readonly #database: Database
  readonly #clock: () => string
  /** Of this process, and running. */
  readonly #own = new Set<string>()
  #renewing: NodeJS.Timeout | undefined

  /** @param clock an expression of SQL */
  constructor(database: Database, clock: () => string) {
    this.#database = database
    this.#clock = clock
  }

  /** Calls that run, by subject. The subjects have to be locked. */
  async running(
    { query }: Queries,
    crowds: readonly CrowdDemand[],
    now: number,
  ): Promise<ReadonlyMap<string, number>> {
    if (crowds.length === 0) return new Map()
    const counts = await query<{ subject: string; running: number }>(
      `SELECT subject, count(*) AS running FROM modelmount_limit_leases
       WHERE expires_at > ? AND subject IN (${crowds.map(() => '?').join(', ')}) GROUP BY subject`,
      [now, ...crowds.map(({ subject }) => subject)],
    )
    return new Map(counts.map(({ subject, running }) => [subject, running]))
  }

  async take({ query }: Queries, id: string, crowds: readonly CrowdDemand[], now: number): Promise<void> {
    await query(
      `INSERT INTO modelmount_limit_leases (id, subject, expires_at) VALUES ${crowds.map(() => '(?, ?, ?)').join(', ')}`,
      crowds.flatMap(({ subject }) => [id, subject, now + leaseMs]),
    )
  }

  async give({ query }: Queries, id: string): Promise<void> {
    await query('DELETE FROM modelmount_limit_leases WHERE id = ?', [id])
  }

  /** Renews it from now on. */
  keep(id: string): void {
    this.#own.add(id)
    // A database that is away for a moment is asked again; for longer, the leases end, as they should.
    this.#renewing ??= setInterval(() => void this.renew().catch(() => {}), renewEveryMs).unref()
  }

  leave(id: string): void {
    this.#own.delete(id)
    if (this.#own.size === 0) this.close()
  }

  async renew(): Promise<void> {
    const ids = [...this.#own]
    for (let from = 0; from < ids.length; from += batchSize) {
      const batch = ids.slice(from, from + batchSize)
      await this.#database.query(
        `UPDATE modelmount_limit_leases SET expires_at = ${this.#clock()} + ${leaseMs}
         WHERE id IN (${batch.map(() => '?').join(', ')})`,
        batch,
      )
    }
  }

  async prune(): Promise<void> {
    await this.#database.query(`DELETE FROM modelmount_limit_leases WHERE expires_at <= ${this.#clock()}`)
  }

  close(): void {
    clearInterval(this.#renewing)
    this.#renewing = undefined
  }
}

const batchSize = 500
