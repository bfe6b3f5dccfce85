/** The rate limiter that counts in the memory of this process. */
import { Accounts } from './accounts.ts'
import { type BucketCharge, findRefusal, statusOf } from './admission.ts'
import { fullLevel, levelAfter, levelAt, minuteMs } from './bucket.ts'
import { type BucketDemand, type ConcurrencyDemand, toDemand, zeroCost } from './demand.ts'
import type { ClosableRateLimiter, Cost, LimitStatus, Limits, Reservation, Subject } from './limits.ts'
import { createReservation } from './reservation.ts'

export class MemoryLimiter implements ClosableRateLimiter {
  readonly limits: Limits
  /** Accounts by window, in milliseconds. Running calls are counted in the accounts of the minute window. */
  readonly #accounts = new Map<number, Accounts>()
  readonly #now: () => number

  /** @param now returns whole milliseconds, preferably of a monotonic clock */
  constructor(limits: Limits, now = monotonicMs) {
    this.limits = limits
    this.#now = now
  }

  /** Number of map entries. One subject can have several. */
  get size(): number {
    return [...this.#accounts.values()].reduce((sum, accounts) => sum + accounts.size, 0)
  }

  async reserve(subjects: readonly Subject[], cost: Cost): Promise<Reservation> {
    const now = this.#now()
    const { buckets, concurrency } = toDemand(subjects, this.limits, cost)
    const charges = buckets.map((demand) => this.#prepareCharge(demand, now))
    const refusal = findRefusal(
      charges,
      concurrency.map(({ subject, limit, label }) => ({
        limit,
        label,
        running: this.#accountsOf(minuteMs).find(subject, now)?.running ?? 0,
      })),
    )
    if (refusal) {
      // Saves the current time although the call takes nothing. If the clock has been set back, the bucket
      // would otherwise not refill until the old time.
      for (const charge of charges) this.#saveBucket(charge, now)
      throw refusal
    }
    for (const charge of charges) {
      charge.level = levelAfter(charge.level, charge, charge.units)
      this.#saveBucket(charge, now)
    }
    for (const { subject } of concurrency) this.#addRunning(subject, +1, now)

    return createReservation(statusOf(charges), cost, (difference, isOver) =>
      this.#charge(buckets, difference, isOver ? concurrency : []),
    )
  }

  async status(subjects: readonly Subject[]): Promise<readonly LimitStatus[]> {
    const { buckets } = toDemand(subjects, this.limits, zeroCost)
    return statusOf(buckets.map((demand) => this.#prepareCharge(demand, this.#now())))
  }

  async close(): Promise<void> {}

  async #charge(
    buckets: readonly BucketDemand[],
    difference: Cost,
    released: readonly ConcurrencyDemand[],
  ): Promise<void> {
    const now = this.#now()
    for (const demand of buckets) {
      const units = difference[demand.name] ?? 0
      if (units === 0) continue
      const charge = this.#prepareCharge(demand, now)
      charge.level = levelAfter(charge.level, charge, units)
      this.#saveBucket(charge, now)
    }
    for (const { subject } of released) this.#addRunning(subject, -1, now)
  }

  #prepareCharge(demand: BucketDemand, now: number): SubjectCharge {
    const { subject, name, limit, windowMs, units, label } = demand
    const bucket = this.#accountsOf(windowMs).find(subject, now)?.[name]
    const level = bucket ? levelAt(bucket, demand, now) : fullLevel(demand)
    return { subject, name, limit, windowMs, units, label, level }
  }

  #saveBucket({ subject, name, limit, windowMs, level }: SubjectCharge, at: number): void {
    const accounts = this.#accountsOf(windowMs)
    const account = accounts.find(subject, at) ?? { running: 0 }
    account[name] = { limit, windowMs, level, at }
    accounts.save(subject, account, at)
  }

  #addRunning(subject: string, calls: number, now: number): void {
    const accounts = this.#accountsOf(minuteMs)
    const account = accounts.find(subject, now) ?? { running: 0 }
    account.running += calls
    accounts.save(subject, account, now)
  }

  #accountsOf(windowMs: number): Accounts {
    const known = this.#accounts.get(windowMs)
    if (known) return known
    const accounts = new Accounts(windowMs)
    this.#accounts.set(windowMs, accounts)
    return accounts
  }
}

interface SubjectCharge extends BucketCharge {
  readonly subject: string
}

const monotonicMs = (): number => Math.floor(performance.now())
