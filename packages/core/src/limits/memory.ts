/** Limits in this process. */
import { type Account, Accounts } from './accounts.ts'
import { type BucketCharge, findRefusal, statusOf } from './admission.ts'
import { fullLevel, levelAfter, levelAt } from './bucket.ts'
import { type BucketDemand, type ConcurrencyDemand, toDemand, zeroCost } from './demand.ts'
import type { ClosableRateLimiter, Cost, LimitStatus, Limits, Reservation, Subject } from './limits.ts'
import { createReservation } from './reservation.ts'

export class MemoryLimiter implements ClosableRateLimiter {
  readonly limits: Limits
  readonly #accounts = new Accounts()
  readonly #now: () => number

  /** @param now whole milliseconds, of a clock that is best never set */
  constructor(limits: Limits, now = monotonicMs) {
    this.limits = limits
    this.#now = now
  }

  /** Subjects that it knows something of. */
  get size(): number {
    return this.#accounts.size
  }

  async reserve(subjects: readonly Subject[], cost: Cost): Promise<Reservation> {
    const now = this.#now()
    const { buckets, concurrency } = toDemand(subjects, this.limits, cost)
    const charges = buckets.map((demand) => this.#prepareCharge(demand, now))
    const refusal = findRefusal(
      charges,
      concurrency.map(({ subject, limit }) => ({ limit, running: this.#accounts.get(subject, now).running })),
    )
    if (refusal) {
      // A clock that has gone back would be waited for.
      for (const charge of charges) this.#saveBucket(charge, now)
      throw refusal
    }
    for (const charge of charges) {
      charge.level = levelAfter(charge.level, charge.limit, charge.units)
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
      const units = difference[demand.name]
      if (units === 0) continue
      const charge = this.#prepareCharge(demand, now)
      charge.level = levelAfter(charge.level, charge.limit, units)
      this.#saveBucket(charge, now)
    }
    for (const { subject } of released) this.#addRunning(subject, -1, now)
  }

  #prepareCharge({ subject, name, limit, units }: BucketDemand, now: number): AccountCharge {
    const account = this.#accounts.get(subject, now)
    const bucket = account[name]
    return {
      subject,
      name,
      limit,
      units,
      account,
      level: bucket ? levelAt(bucket, limit, now) : fullLevel(limit),
    }
  }

  #saveBucket({ account, subject, name, limit, level }: AccountCharge, at: number): void {
    account[name] = { limit, level, at }
    this.#accounts.update(subject, account)
  }

  #addRunning(subject: string, calls: number, now: number): void {
    const account = this.#accounts.get(subject, now)
    account.running += calls
    this.#accounts.update(subject, account)
  }
}

interface AccountCharge extends BucketCharge {
  readonly subject: string
  readonly account: Account
}

const monotonicMs = (): number => Math.floor(performance.now())
