/**
 * The rate limiter that several processes share through Redis or Valkey. Each operation is one run of a script, which
 * reads the clock of the server.
 */
import { randomUUID } from 'node:crypto'
import { msUntilExpiry } from '../../storage/leases.ts'
import { findRefusal, statusOf } from '../admission.ts'
import { levelAfter, minuteMs } from '../bucket.ts'
import { type BucketDemand, type ConcurrencyDemand, toDemand, zeroCost } from '../demand.ts'
import type { ClosableRateLimiter, Cost, LimitStatus, Limits, Reservation, Subject } from '../limits.ts'
import { createReservation } from '../reservation.ts'
import { SettlementRetry } from '../settlement-retry.ts'
import { type RedisClient, runScript, sendScript } from './client.ts'
import { OwnCalls, type RenewedLeases } from './own-calls.ts'
import type { ScriptRequest } from './script.ts'

export interface RedisLimiterOptions {
  readonly limits: Limits
  /** The first part of all keys. */
  readonly prefix: string
  /** Clock for tests, in whole milliseconds. @default the clock of the server */
  readonly now?: (() => number) | undefined
}

/** Rejects if the server is unavailable. A client that is connecting has 2 s for it. */
export async function openRedisLimiter(
  client: RedisClient,
  options: RedisLimiterOptions,
): Promise<RedisLimiter> {
  const limiter = new RedisLimiter(client, options)
  await limiter.open()
  return limiter
}

export class RedisLimiter implements ClosableRateLimiter {
  readonly limits: Limits
  readonly #client: RedisClient
  readonly #prefix: string
  readonly #now: (() => number) | undefined
  readonly #clock: () => number
  readonly #ownCalls: OwnCalls
  readonly #settlements = new SettlementRetry()

  constructor(client: RedisClient, { limits, prefix, now }: RedisLimiterOptions) {
    this.limits = limits
    this.#client = client
    // Keys with the same text in braces are in the same slot of a cluster, where one script can change all of them.
    this.#prefix = `{${prefix}}`
    this.#now = now
    this.#clock = now ?? Date.now
    this.#ownCalls = new OwnCalls(this.#clock, (leases) => this.#renew(leases))
  }

  async open(): Promise<void> {
    const nothing = { isChecked: false, buckets: [], running: [] }
    await sendScript(this.#client, [this.#replyKey()], JSON.stringify(nothing))
  }

  async reserve(subjects: readonly Subject[], cost: Cost): Promise<Reservation> {
    const { buckets, concurrency } = toDemand(subjects, this.limits, cost)
    if (buckets.length === 0 && concurrency.length === 0) return createReservation([], cost, async () => {})
    const lease = concurrency.length > 0 ? randomUUID() : undefined
    const runningKeys = concurrency.map((demand) => this.#runningKey(demand))
    const requestedAt = this.#clock()
    const { levels, counts } = await this.#run(buckets, runningKeys, {
      isChecked: true,
      buckets,
      running: concurrency.map(({ limit }, index) => ({
        limit,
        renewed: this.#ownCalls.overdue(runningKeys[index] ?? ''),
      })),
      added: lease,
    })
    const charges = buckets.map((demand, index) => ({ ...demand, level: levels[index] ?? 0 }))
    // The script has decided by the same arithmetic.
    const refusal = findRefusal(
      charges,
      concurrency.map(({ limit, label }, index) => ({ limit, label, ...(counts[index] ?? { running: 0 }) })),
    )
    if (refusal) throw refusal
    for (const charge of charges) charge.level = levelAfter(charge.level, charge, charge.units)
    if (lease) this.#ownCalls.track(lease, runningKeys, requestedAt)

    return createReservation(statusOf(charges), cost, async (difference, isOver) => {
      if (!isOver) return this.#charge(buckets, difference)
      // The lease is not renewed any more. So it expires even if the settlement fails.
      if (lease) await this.#ownCalls.release(lease)
      return this.#settlements.run(() => this.#charge(buckets, difference, { lease, runningKeys }))
    })
  }

  async status(subjects: readonly Subject[]): Promise<readonly LimitStatus[]> {
    const { buckets } = toDemand(subjects, this.limits, zeroCost)
    if (buckets.length === 0) return []
    const { levels } = await this.#run(buckets, [], { isChecked: false, buckets, running: [] })
    return statusOf(buckets.map((demand, index) => ({ ...demand, level: levels[index] ?? 0 })))
  }

  /** Stops the timers. The client stays open, because it belongs to the host app. */
  async close(): Promise<void> {
    this.#ownCalls.close()
    await this.#settlements.close()
  }

  /** Renews the leases of running calls, and retries failed settlements. Timers do the same at intervals. */
  async renew(): Promise<void> {
    await this.#settlements.retry()
    await this.#ownCalls.renew()
  }

  async #charge(
    demands: readonly BucketDemand[],
    difference: Cost,
    released: { readonly lease: string | undefined; readonly runningKeys: readonly string[] } = noCall,
  ): Promise<void> {
    const buckets = demands
      .map((demand) => ({ ...demand, units: difference[demand.name] ?? 0 }))
      .filter(({ units }) => units !== 0)
    const { lease, runningKeys } = released
    if (buckets.length === 0 && runningKeys.length === 0) return
    const running = runningKeys.map(() => ({ renewed: [] }))
    await this.#run(buckets, runningKeys, { isChecked: false, buckets, running, removed: lease })
  }

  async #renew(leases: RenewedLeases): Promise<void> {
    if (leases.size === 0) return
    const running = [...leases.values()].map((renewed) => ({ renewed }))
    await this.#run([], [...leases.keys()], { isChecked: false, buckets: [], running })
  }

  async #run(
    buckets: readonly BucketDemand[],
    runningKeys: readonly string[],
    request: ScriptRequest,
  ): Promise<ScriptReply> {
    const keys = [this.#replyKey(), ...buckets.map((demand) => this.#bucketKey(demand)), ...runningKeys]
    const sized = request.buckets.map(({ limit, windowMs, units }) => ({ limit, windowMs, units }))
    const argument = JSON.stringify({ ...request, buckets: sized, now: this.#now?.() })
    const [now = 0, ...numbers] = await runScript(this.#client, keys, argument)
    const [levels, rest] = [numbers.slice(0, buckets.length), numbers.slice(buckets.length)]
    const counts = runningKeys.map((_, index) => ({
      running: rest[2 * index] ?? 0,
      freeInMs: msUntilExpiry(rest[2 * index + 1] ?? 0, now),
    }))
    return { levels, counts }
  }

  #replyKey(): string {
    return `${this.#prefix}:reply:${randomUUID()}`
  }

  /** The scale of a level depends on the window, so buckets with different windows need different keys. */
  #bucketKey({ subject, name, windowMs }: BucketDemand): string {
    return `${this.#prefix}:${windowMs === minuteMs ? name : `${name}/${windowMs}`}:${subject}`
  }

  #runningKey({ subject }: ConcurrencyDemand): string {
    return `${this.#prefix}:concurrent:${subject}`
  }
}

const noCall = { lease: undefined, runningKeys: [] }

interface ScriptReply {
  /** Levels before the operation. */
  readonly levels: readonly number[]
  readonly counts: readonly { readonly running: number; readonly freeInMs: number | undefined }[]
}
