/** Limits in this process. */
import { type Account, Accounts } from './accounts.ts'
import { type Draw, refusalOf, statusOf } from './admission.ts'
import { fullLevel, levelAfter, levelAt } from './bucket.ts'
import { type BucketDemand, type CrowdDemand, demandOf, nothing } from './demand.ts'
import type { Cost, LimitStatus, Limits, OpenRateLimiter, Reservation, Subject } from './limits.ts'
import { reservation } from './reservation.ts'

export class MemoryLimiter implements OpenRateLimiter {
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
    const { buckets, crowds } = demandOf(subjects, this.limits, cost)
    const draws = buckets.map((demand) => this.#draw(demand, now))
    const refusal = refusalOf(
      draws,
      crowds.map(({ subject, limit }) => ({ limit, running: this.#accounts.get(subject, now).running })),
    )
    if (refusal) {
      // A clock that has gone back would be waited for.
      for (const draw of draws) this.#set(draw, now)
      throw refusal
    }
    for (const draw of draws) {
      draw.level = levelAfter(draw.level, draw.limit, draw.units)
      this.#set(draw, now)
    }
    for (const { subject } of crowds) this.#run(subject, +1, now)

    return reservation(statusOf(draws), cost, (difference, isOver) =>
      this.#charge(buckets, difference, isOver ? crowds : []),
    )
  }

  async status(subjects: readonly Subject[]): Promise<readonly LimitStatus[]> {
    const { buckets } = demandOf(subjects, this.limits, nothing)
    return statusOf(buckets.map((demand) => this.#draw(demand, this.#now())))
  }

  async close(): Promise<void> {}

  async #charge(
    buckets: readonly BucketDemand[],
    difference: Cost,
    left: readonly CrowdDemand[],
  ): Promise<void> {
    const now = this.#now()
    for (const demand of buckets) {
      const units = difference[demand.name]
      if (units === 0) continue
      const draw = this.#draw(demand, now)
      draw.level = levelAfter(draw.level, draw.limit, units)
      this.#set(draw, now)
    }
    for (const { subject } of left) this.#run(subject, -1, now)
  }

  #draw({ subject, name, limit, units }: BucketDemand, now: number): BucketDraw {
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

  #set({ account, subject, name, limit, level }: BucketDraw, at: number): void {
    account[name] = { limit, level, at }
    this.#accounts.changed(subject, account)
  }

  #run(subject: string, calls: number, now: number): void {
    const account = this.#accounts.get(subject, now)
    account.running += calls
    this.#accounts.changed(subject, account)
  }
}

interface BucketDraw extends Draw {
  readonly subject: string
  readonly account: Account
}

const monotonicMs = (): number => Math.floor(performance.now())
