/**
 * Limits that several processes share through a database. Each call locks the rows of its subjects, always in the same order, so that
 * nobody waits in a circle; then it reads the clock, decides as in memory, and writes them.
 */
import { randomUUID } from 'node:crypto'
import { LlmError } from '../errors.ts'
import type { Database, Queries, SqlValue } from '../storage/database.ts'
import { migrate } from '../storage/migrations.ts'
import { type LimitName, refusalOf, statusOf } from './admission.ts'
import { fullLevel, levelAt, perUnit, resetMs } from './bucket.ts'
import { type BucketDemand, type Demand, demandOf } from './demand.ts'
import { Leases, leaseTables } from './leases.ts'
import type { Cost, Limits, RateLimiter, Reservation, Subject } from './limits.ts'
import { reservation } from './reservation.ts'

export interface SqlLimiterOptions {
  readonly limits: Limits
  /** For tests: whole milliseconds. @default the clock of the database */
  readonly now?: (() => number) | undefined
}

export async function openSqlLimiter(
  database: Database,
  { limits, now }: SqlLimiterOptions,
): Promise<SqlLimiter> {
  await migrate(database, 'limits', [[...tables, ...leaseTables]])
  return new SqlLimiter(database, limits, now ? () => String(now()) : () => database.clock)
}

const tables = [
  `CREATE TABLE modelmount_limits (
    subject TEXT NOT NULL,
    name TEXT NOT NULL,
    level BIGINT NOT NULL,
    at BIGINT NOT NULL,
    full_at BIGINT NOT NULL,
    PRIMARY KEY (subject, name)
  )`,
  'CREATE INDEX modelmount_limits_full_at ON modelmount_limits (full_at)',
]

class SqlLimiter implements RateLimiter {
  readonly #database: Database
  readonly #limits: Limits
  readonly #clock: () => string
  readonly #leases: Leases
  #pruned = performance.now()
  #pruning: Promise<void> | undefined

  constructor(database: Database, limits: Limits, clock: () => string) {
    this.#database = database
    this.#limits = limits
    this.#clock = clock
    this.#leases = new Leases(database, clock)
  }

  async reserve(subjects: readonly Subject[], cost: Cost): Promise<Reservation> {
    const { buckets, crowds } = demandOf(subjects, this.#limits, cost)
    const lease = crowds.length > 0 ? randomUUID() : undefined
    this.#pruneNowAndThen()
    const taken = await this.#database.transaction(async (queries) => {
      const { rows, now } = await this.#lock(queries, { buckets, crowds })
      const draws = buckets.map((demand) => ({ ...demand, level: levelOf(rows, demand, now) }))
      const running = await this.#leases.running(queries, crowds, now)
      const refusal = refusalOf(
        draws,
        crowds.map(({ subject, limit }) => ({ limit, running: running.get(subject) ?? 0 })),
      )
      if (refusal) {
        // A clock that has gone back would be waited for.
        if (rows.every(({ at }) => at <= now)) throw refusal
        await write(queries, draws, now)
        return refusal
      }
      for (const draw of draws) draw.level -= draw.units * perUnit
      await write(queries, draws, now)
      if (lease) await this.#leases.take(queries, lease, crowds, now)
      return draws
    })
    if (taken instanceof LlmError) throw taken
    if (lease) this.#leases.keep(lease)

    return reservation(statusOf(taken), async (actual) => {
      // From here on nobody keeps it: whatever happens now, it ends.
      if (lease) this.#leases.leave(lease)
      const changed = buckets.filter(({ name, units }) => units !== actual[name])
      if (changed.length === 0 && !lease) return
      await this.#database.transaction(async (queries) => {
        const { rows, now } = await this.#lock(queries, { buckets: changed, crowds })
        const settled = changed.map((demand) => {
          const level = levelOf(rows, demand, now) + (demand.units - actual[demand.name]) * perUnit
          return { ...demand, level: Math.min(level, fullLevel(demand.limit)) }
        })
        await write(queries, settled, now)
        if (lease) await this.#leases.give(queries, lease)
      })
    })
  }

  async close(): Promise<void> {
    this.#leases.close()
    await this.#pruning
  }

  /** Says that its calls still run; by itself it does so often enough. */
  renew(): Promise<void> {
    return this.#leases.renew()
  }

  /** Forgets subjects with full buckets. Resolves when there are none. */
  async prune(): Promise<void> {
    for (let found = batchSize; found === batchSize; ) {
      const idle = await this.#database.query<RowId>(
        `SELECT subject, name FROM modelmount_limits WHERE full_at <= ${this.#clock()} LIMIT ${batchSize}`,
      )
      found = idle.length
      if (found === 0) break
      await this.#database.transaction(async (queries) => {
        await lockRows(queries, idle, this.#clock())
        await queries.query(
          `DELETE FROM modelmount_limits WHERE full_at <= ${this.#clock()} AND (${idle.map(() => '(subject = ? AND name = ?)').join(' OR ')})`,
          idle.flatMap(({ subject, name }) => [subject, name]),
        )
      })
    }
    await this.#leases.prune()
  }

  #pruneNowAndThen(): void {
    if (performance.now() - this.#pruned < pruneEveryMs || this.#pruning) return
    this.#pruned = performance.now()
    // Nothing depends on it, and the next call hears of a database that is away.
    this.#pruning = this.prune()
      .catch(() => {})
      .finally(() => {
        this.#pruning = undefined
      })
  }

  #lock(queries: Queries, { buckets, crowds }: Demand): Promise<Locked> {
    const ids = [...buckets, ...crowds.map(({ subject }) => ({ subject, name: 'concurrent' as const }))]
    return lockRows(queries, ids, this.#clock())
  }
}

const pruneEveryMs = 60_000
/** Of rows that are locked at once. */
const batchSize = 100

interface RowId {
  readonly subject: string
  /** `concurrent`: its buckets say nothing, but who has locked it counts alone. */
  readonly name: LimitName | 'concurrent'
}
interface Row extends RowId {
  readonly level: number
  readonly at: number
  readonly now: number
}
interface Locked {
  readonly rows: readonly Row[]
  /** By the clock, after the last of them was locked. */
  readonly now: number
}

/** Of all ways to lock a row, and one that is not there yet, the one that both databases know. */
async function lockRows(queries: Queries, ids: readonly RowId[], clock: string): Promise<Locked> {
  if (ids.length === 0) return { rows: [], now: 0 }
  const sorted = [...ids].sort((a, b) => compare(a.subject, b.subject) || compare(a.name, b.name))
  const rows = await queries.query<Row>(
    `INSERT INTO modelmount_limits (subject, name, level, at, full_at)
     VALUES ${sorted.map(() => `(?, ?, 0, ${longAgo}, ${longAgo})`).join(', ')}
     ON CONFLICT (subject, name) DO UPDATE SET full_at = modelmount_limits.full_at
     RETURNING subject, name, level, at, ${clock} AS now`,
    sorted.flatMap(({ subject, name }) => [subject, name]),
  )
  return { rows, now: Math.max(...rows.map(({ now }) => now)) }
}

/** Whatever the clock says: a bucket that nobody has used is full by now. */
const longAgo = Number.MIN_SAFE_INTEGER

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

function levelOf(rows: readonly Row[], { subject, name, limit }: BucketDemand, now: number): number {
  const row = rows.find((row) => row.subject === subject && row.name === name)
  return row ? levelAt(row, limit, now) : fullLevel(limit)
}

async function write(
  queries: Queries,
  buckets: readonly (BucketDemand & { readonly level: number })[],
  now: number,
): Promise<void> {
  if (buckets.length === 0) return
  await queries.query(
    `INSERT INTO modelmount_limits (subject, name, level, at, full_at)
     VALUES ${buckets.map(() => '(?, ?, ?, ?, ?)').join(', ')}
     ON CONFLICT (subject, name) DO UPDATE SET level = excluded.level, at = excluded.at, full_at = excluded.full_at`,
    buckets.flatMap(({ subject, name, limit, level }): SqlValue[] => [
      subject,
      name,
      level,
      now,
      now + resetMs(level, limit),
    ]),
  )
}
