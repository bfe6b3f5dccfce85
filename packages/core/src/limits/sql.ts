/**
 * Limits that several processes share through a database. Each call locks the rows of its subjects, always in the same order, so that
 * nobody waits in a circle; then it reads the clock, decides as in memory, and writes them.
 */
import { randomUUID } from 'node:crypto'
import { LlmError } from '../errors.ts'
import type { Database, Queries, SqlValue } from '../storage/database.ts'
import { migrate } from '../storage/migrations.ts'
import { type LimitName, refusalOf, statusOf } from './admission.ts'
import { fullLevel, levelAfter, levelAt, resetMs } from './bucket.ts'
import { type BucketDemand, type CrowdDemand, type Demand, demandOf, nothing } from './demand.ts'
import { Lines } from './keyed-mutex.ts'
import type { Cost, LimitStatus, Limits, OpenRateLimiter, Reservation, Subject } from './limits.ts'
import { reservation } from './reservation.ts'
import { RunningCalls, runningCallTables } from './running-calls.ts'
import { Corrections } from './settlement-retry.ts'

export interface SqlLimiterOptions {
  readonly limits: Limits
  /** For tests: whole milliseconds. @default the clock of the database */
  readonly now?: (() => number) | undefined
}

export async function openSqlLimiter(
  database: Database,
  { limits, now }: SqlLimiterOptions,
): Promise<SqlLimiter> {
  await migrate(database, 'limits', [[...tables, ...runningCallTables]])
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

class SqlLimiter implements OpenRateLimiter {
  readonly limits: Limits
  readonly #database: Database
  readonly #clock: () => string
  readonly #running: RunningCalls
  readonly #lines = new Lines()
  readonly #corrections = new Corrections()
  #pruned = performance.now()
  #pruning: Promise<void> | undefined

  constructor(database: Database, limits: Limits, clock: () => string) {
    this.#database = database
    this.limits = limits
    this.#clock = clock
    this.#running = new RunningCalls(database, clock)
  }

  async reserve(subjects: readonly Subject[], cost: Cost): Promise<Reservation> {
    const demand = demandOf(subjects, this.limits, cost)
    const { buckets, crowds } = demand
    const lease = crowds.length > 0 ? randomUUID() : undefined
    this.#pruneNowAndThen()
    let at = 0
    const taken = await this.#locked(demand, async (queries, { rows, now }) => {
      const draws = buckets.map((demand) => ({ ...demand, level: levelOf(rows, demand, now) }))
      const running = await this.#running.count(queries, crowds, now)
      const refusal = refusalOf(
        draws,
        crowds.map(({ subject, limit }) => ({ limit, running: running.get(subject) ?? 0 })),
      )
      if (refusal) {
        // A clock that has gone back would be waited for, by buckets and by leases.
        if (crowds.length === 0 && rows.every(({ at }) => at <= now)) throw refusal
        await write(queries, draws, now)
        return refusal
      }
      for (const draw of draws) draw.level = levelAfter(draw.level, draw.limit, draw.units)
      await write(queries, draws, now)
      if (lease) await this.#running.add(queries, lease, crowds, now)
      at = now
      return draws
    })
    if (taken instanceof LlmError) throw taken
    if (lease) this.#running.keep(lease, crowds, at)

    return reservation(statusOf(taken), cost, async (difference, isOver) => {
      if (!isOver) return this.#charge(buckets, difference)
      // From here on nobody keeps it: whatever happens now, it ends.
      if (lease) await this.#running.own.leave(lease)
      const left = lease === undefined ? undefined : { lease, crowds }
      return this.#corrections.make(() => this.#charge(buckets, difference, left))
    })
  }

  async status(subjects: readonly Subject[]): Promise<readonly LimitStatus[]> {
    const { buckets } = demandOf(subjects, this.limits, nothing)
    if (buckets.length === 0) return []
    const rows = await this.#database.query<Row>(
      `SELECT subject, name, level, at, ${this.#clock()} AS now FROM modelmount_limits
       WHERE ${buckets.map(() => '(subject = ? AND name = ?)').join(' OR ')}`,
      buckets.flatMap(({ subject, name }) => [subject, name]),
    )
    return statusOf(buckets.map((demand) => ({ ...demand, level: levelOf(rows, demand, rows[0]?.now ?? 0) })))
  }

  async close(): Promise<void> {
    this.#running.own.close()
    await this.#corrections.close()
    await this.#pruning
  }

  /** Says that its calls still run, and settles what could not be; by itself it does so often enough. */
  async renew(): Promise<void> {
    await this.#corrections.repeat()
    await this.#running.own.renew()
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
    await this.#running.prune()
  }

  async #charge(
    buckets: readonly BucketDemand[],
    difference: Cost,
    left?: { readonly lease: string; readonly crowds: readonly CrowdDemand[] },
  ): Promise<void> {
    const charged = buckets.filter(({ name }) => difference[name] !== 0)
    if (charged.length === 0 && !left) return
    const demand = { buckets: charged, crowds: left?.crowds ?? [] }
    await this.#locked(demand, async (queries, { rows, now }) => {
      const corrected = charged.map((demand) => ({
        ...demand,
        level: levelAfter(levelOf(rows, demand, now), demand.limit, difference[demand.name]),
      }))
      await write(queries, corrected, now)
      if (left) await this.#running.remove(queries, left.lease)
    })
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

  /** A transaction that has the rows of its subjects, for a decision or a correction. */
  #locked<Result>(
    { buckets, crowds }: Demand,
    work: (queries: Queries, locked: Locked) => Promise<Result>,
  ): Promise<Result> {
    const ids = [...buckets, ...crowds.map(({ subject }) => ({ subject, name: 'concurrent' as const }))]
    const transaction = () =>
      this.#database.transaction(async (queries) =>
        work(queries, await lockRows(queries, ids, this.#clock())),
      )
    return this.#lines.inTurn(
      ids.map(({ subject }) => subject),
      transaction,
    )
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
