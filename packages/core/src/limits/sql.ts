/**
 * The rate limiter that several processes share through a database. For each call, it locks the rows of the
 * subjects, always in the same order to prevent deadlocks. Then it reads the clock, decides like the limiter
 * in memory, and writes the rows.
 */
import { randomUUID } from 'node:crypto'
import { LlmError } from '../errors.ts'
import type { Database, Queries, SqlValue } from '../storage/database.ts'
import { type Migration, migrate } from '../storage/migrations.ts'
import { findRefusal, statusOf } from './admission.ts'
import { fullLevel, levelAfter, levelAt, minuteMs, resetMs } from './bucket.ts'
import { type BucketDemand, type ConcurrencyDemand, type Demand, toDemand, zeroCost } from './demand.ts'
import { KeyedMutex } from './keyed-mutex.ts'
import type { ClosableRateLimiter, Cost, LimitStatus, Limits, Reservation, Subject } from './limits.ts'
import { createReservation } from './reservation.ts'
import { RunningCalls, runningCallTables } from './running-calls.ts'
import { SettlementRetry } from './settlement-retry.ts'

export interface SqlLimiterOptions {
  readonly limits: Limits
  /** Clock for tests, in whole milliseconds. @default the clock of the database */
  readonly now?: (() => number) | undefined
}

export async function openSqlLimiter(
  database: Database,
  { limits, now }: SqlLimiterOptions,
): Promise<SqlLimiter> {
  await migrate(database, 'limits', limitTables)
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

/** Tables of limits, as steps of `storage/migrations.ts`. Released steps must not change. */
export const limitTables: readonly Migration[] = [[...tables, ...runningCallTables]]

class SqlLimiter implements ClosableRateLimiter {
  readonly limits: Limits
  readonly #database: Database
  readonly #clock: () => string
  readonly #runningCalls: RunningCalls
  readonly #mutex = new KeyedMutex()
  readonly #settlements = new SettlementRetry()
  #prunedAt = performance.now()
  #pruning: Promise<void> | undefined

  constructor(database: Database, limits: Limits, clock: () => string) {
    this.#database = database
    this.limits = limits
    this.#clock = clock
    this.#runningCalls = new RunningCalls(database, clock)
  }

  async reserve(subjects: readonly Subject[], cost: Cost): Promise<Reservation> {
    const demand = toDemand(subjects, this.limits, cost)
    const { buckets, concurrency } = demand
    const lease = concurrency.length > 0 ? randomUUID() : undefined
    this.#pruneOccasionally()
    let at = 0
    const outcome = await this.#withLockedRows(demand, async (queries, { rows, now }) => {
      const charges = buckets.map((demand) => ({ ...demand, level: levelOf(rows, demand, now) }))
      const running = await this.#runningCalls.count(queries, concurrency, now)
      const refusal = findRefusal(
        charges,
        concurrency.map(({ subject, limit, label }) => ({
          limit,
          label,
          ...(running.get(subject) ?? { running: 0 }),
        })),
      )
      if (refusal) {
        // A throw rolls the transaction back. But lease changes by `count` must be committed. If the clock
        // has been set back, the current time must be committed, too. Otherwise buckets would not refill
        // until the old time.
        if (concurrency.length === 0 && rows.every(({ at }) => at <= now)) throw refusal
        await writeBuckets(queries, charges, now)
        return refusal
      }
      for (const charge of charges) charge.level = levelAfter(charge.level, charge, charge.units)
      await writeBuckets(queries, charges, now)
      if (lease) await this.#runningCalls.add(queries, lease, concurrency, now)
      at = now
      return charges
    })
    if (outcome instanceof LlmError) throw outcome
    if (lease) this.#runningCalls.track(lease, concurrency, at)

    return createReservation(statusOf(outcome), cost, async (difference, isOver) => {
      if (!isOver) return this.#charge(buckets, difference)
      // The lease is not renewed any more. So it expires even if the settlement fails.
      if (lease) await this.#runningCalls.leases.release(lease)
      const released = lease === undefined ? undefined : { lease, concurrency }
      return this.#settlements.run(() => this.#charge(buckets, difference, released))
    })
  }

  async status(subjects: readonly Subject[]): Promise<readonly LimitStatus[]> {
    const { buckets } = toDemand(subjects, this.limits, zeroCost)
    if (buckets.length === 0) return []
    const rows = await this.#database.query<LimitRow>(
      `SELECT subject, name, level, at, ${this.#clock()} AS now FROM modelmount_limits
       WHERE ${buckets.map(() => '(subject = ? AND name = ?)').join(' OR ')}`,
      buckets.flatMap((bucket) => [bucket.subject, rowName(bucket)]),
    )
    return statusOf(buckets.map((demand) => ({ ...demand, level: levelOf(rows, demand, rows[0]?.now ?? 0) })))
  }

  async close(): Promise<void> {
    this.#runningCalls.leases.close()
    await this.#settlements.close()
    await this.#pruning
  }

  /** Renews the leases of running calls, and retries failed settlements. Timers do the same at intervals. */
  async renew(): Promise<void> {
    await this.#settlements.retry()
    await this.#runningCalls.leases.renew()
  }

  /** Deletes the rows of full buckets and of expired leases. */
  async prune(): Promise<void> {
    for (let found = batchSize; found === batchSize; ) {
      const idle = await this.#database.query<LimitRowId>(
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
    await this.#runningCalls.prune()
  }

  async #charge(
    buckets: readonly BucketDemand[],
    difference: Cost,
    released?: { readonly lease: string; readonly concurrency: readonly ConcurrencyDemand[] },
  ): Promise<void> {
    const charged = buckets.filter(({ name }) => (difference[name] ?? 0) !== 0)
    if (charged.length === 0 && !released) return
    const demand = { buckets: charged, concurrency: released?.concurrency ?? [] }
    await this.#withLockedRows(demand, async (queries, { rows, now }) => {
      const corrected = charged.map((demand) => ({
        ...demand,
        level: levelAfter(levelOf(rows, demand, now), demand, difference[demand.name] ?? 0),
      }))
      await writeBuckets(queries, corrected, now)
      if (released) await this.#runningCalls.remove(queries, released.lease)
    })
  }

  #pruneOccasionally(): void {
    if (performance.now() - this.#prunedAt < pruneEveryMs || this.#pruning) return
    this.#prunedAt = performance.now()
    // No call depends on pruning, so errors are ignored. If the database is unavailable, the next call fails
    // and reports it.
    this.#pruning = this.prune()
      .catch(() => {})
      .finally(() => {
        this.#pruning = undefined
      })
  }

  /** Runs the task in a transaction that locks the rows of the subjects. */
  #withLockedRows<Result>(
    { buckets, concurrency }: Demand,
    task: (queries: Queries, locked: LockedRows) => Promise<Result>,
  ): Promise<Result> {
    const ids = [
      ...buckets.map((bucket) => ({ subject: bucket.subject, name: rowName(bucket) })),
      ...concurrency.map(({ subject }) => ({ subject, name: 'concurrent' })),
    ]
    const transaction = () =>
      this.#database.transaction(async (queries) =>
        task(queries, await lockRows(queries, ids, this.#clock())),
      )
    return this.#mutex.runExclusive(
      ids.map(({ subject }) => subject),
      transaction,
    )
  }
}

const pruneEveryMs = 60_000
/** Maximum number of rows that pruning locks at once. */
const batchSize = 100

interface LimitRowId {
  readonly subject: string
  /**
   * The name of a bucket, or `concurrent`. The row `concurrent` is only a lock: its level is unused. It lets
   * one transaction at a time count the running calls of a subject.
   */
  readonly name: string
}
interface LimitRow extends LimitRowId {
  readonly level: number
  readonly at: number
  readonly now: number
}
interface LockedRows {
  readonly rows: readonly LimitRow[]
  /** The time after the last row was locked. */
  readonly now: number
}

/** Locks rows, and inserts missing rows. Uses one SQL statement that SQLite and PostgreSQL both support. */
async function lockRows(queries: Queries, ids: readonly LimitRowId[], clock: string): Promise<LockedRows> {
  if (ids.length === 0) return { rows: [], now: 0 }
  const sorted = [...ids].sort((a, b) => compare(a.subject, b.subject) || compare(a.name, b.name))
  const rows = await queries.query<LimitRow>(
    `INSERT INTO modelmount_limits (subject, name, level, at, full_at)
     VALUES ${sorted.map(() => `(?, ?, 0, ${longAgo}, ${longAgo})`).join(', ')}
     ON CONFLICT (subject, name) DO UPDATE SET full_at = modelmount_limits.full_at
     RETURNING subject, name, level, at, ${clock} AS now`,
    sorted.flatMap(({ subject, name }) => [subject, name]),
  )
  return { rows, now: Math.max(...rows.map(({ now }) => now)) }
}

/** The time that a new row gets, before any real time. A new bucket therefore counts as full. */
const longAgo = Number.MIN_SAFE_INTEGER

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

function levelOf(rows: readonly LimitRow[], demand: BucketDemand, now: number): number {
  const row = rows.find((row) => row.subject === demand.subject && row.name === rowName(demand))
  return row ? levelAt(row, demand, now) : fullLevel(demand)
}

/**
 * Appends the window to the name of a bucket, unless it is a minute. The scale of a level depends on the
 * window, so buckets with different windows need different rows.
 */
const rowName = ({ name, windowMs }: BucketDemand): string =>
  windowMs === minuteMs ? name : `${name}/${windowMs}`

async function writeBuckets(
  queries: Queries,
  buckets: readonly (BucketDemand & { readonly level: number })[],
  now: number,
): Promise<void> {
  if (buckets.length === 0) return
  await queries.query(
    `INSERT INTO modelmount_limits (subject, name, level, at, full_at)
     VALUES ${buckets.map(() => '(?, ?, ?, ?, ?)').join(', ')}
     ON CONFLICT (subject, name) DO UPDATE SET level = excluded.level, at = excluded.at, full_at = excluded.full_at`,
    buckets.flatMap((bucket): SqlValue[] => [
      bucket.subject,
      rowName(bucket),
      bucket.level,
      now,
      now + resetMs(bucket.level, bucket),
    ]),
  )
}
