/**
 * Shares time among tenants by fair queueing with a virtual time (Bennett and Zhang, WF2Q+, 1996). Each tenant has a
 * time: what it has used, divided by its weight. The tenant with the lowest time is next. The virtual time is what
 * each tenant would have used with equal shares. A tenant that arrives starts a little before it, so time that it did
 * not use is lost, and tenants that arrive one after the other do not put off the others for ever.
 */

import { clamp } from '../../../../util/clamp.ts'
import type { GenerationJob } from '../runner.ts'

/**
 * Maximum lead of a tenant over the first one that waits, in ms. A tenant may have used more while the others wanted
 * no more. That is forgotten, so that the tenant does not wait until all others have used as much. A tenant that
 * does not wait is behind by at most the same time.
 */
const maxLeadMs = 1_000
/** How long before the virtual time a tenant starts at most, in ms, so that its first call is served soon. */
const maxCreditMs = 250
/** How much a tenant that arrives or returns uses before it loses its precedence, in ms of virtual time. */
const precedenceMs = 250

export type Competitor = Pick<GenerationJob, 'tenant' | 'weight'>

interface TimeAccount {
  /** Time that the tenant has used, in ms of virtual time. */
  time: number
  /** `time` when the tenant last began to compete. */
  arrivalTime: number
  weight: number
  /** The last call of `setCompetitors` with this tenant. */
  competedIn: number
}

export class FairClock {
  readonly #countsDeparted: boolean
  /** Of tenants that do not compete, only those after `#startTime` are kept. */
  readonly #accounts = new Map<string, TimeAccount>()
  /** Number of calls of `setCompetitors`. */
  #round = 0
  #virtualTime = 0
  /** Time at which a tenant starts, in ms. */
  #startTime = 0
  /** Time charged since competitors were last set, in ms. */
  #chargedMs = 0
  /** Sum of the weights among which this time is shared. */
  #totalWeight = 1

  /**
   * @param countsDeparted whether a tenant that has left with more than the others still counts, since with equal
   * shares it would still be served. The others then catch up less with a tenant that leaves and returns.
   */
  constructor({ countsDeparted = false } = {}) {
    this.#countsDeparted = countsDeparted
  }

  /** Time that the tenant has used, in ms of virtual time. */
  timeOf(tenant: string): number {
    return this.#accounts.get(tenant)?.time ?? this.#startTime
  }

  /**
   * Time by which waiting calls are ordered. Tenants that have just arrived or returned precede the others, so a
   * tenant with few calls does not wait for those that always wait. What they use counts as usual.
   */
  orderTimeOf(tenant: string): number {
    const account = this.#accounts.get(tenant)
    if (account === undefined) return this.#startTime - precedenceMs
    const isNew = account.time - account.arrivalTime < precedenceMs
    return isNew ? account.time - precedenceMs : account.time
  }

  charge({ tenant, weight }: Competitor, ms: number): void {
    this.#accountOf(tenant).time += ms / weight
    this.#chargedMs += ms
  }

  /**
   * Sets the tenants that now compete for time. The others make up for nothing later. Called before each step, so
   * it creates no objects.
   * @param competitors may list a tenant several times
   * @param waiting those of the tenants that want more time than they get. @default all
   */
  setCompetitors(competitors: readonly Competitor[], waiting = competitors): void {
    const elapsed = this.#chargedMs / this.#totalWeight
    this.#chargedMs = 0
    this.#round++
    for (const { tenant, weight } of competitors) {
      const account = this.#accountOf(tenant)
      const isNew = account.competedIn < this.#round - 1
      if (isNew) account.arrivalTime = account.time
      account.weight = weight
      account.competedIn = this.#round
    }
    if (competitors.length === 0) this.#accounts.clear()
    else this.#advance(elapsed, this.#lowestOf(waiting.length > 0 ? waiting : competitors))
  }

  #accountOf(tenant: string): TimeAccount {
    const existing = this.#accounts.get(tenant)
    if (existing) return existing
    const time = this.#startTime
    const account = { time, arrivalTime: time, weight: 1, competedIn: Number.NEGATIVE_INFINITY }
    this.#accounts.set(tenant, account)
    return account
  }

  #advance(elapsed: number, lowestWaiting: number): void {
    let [lowest, highest] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
    for (const account of this.#accounts.values()) {
      const time = clamp(account.time, lowestWaiting - maxLeadMs, lowestWaiting + maxLeadMs)
      account.arrivalTime += time - account.time
      account.time = time
      if (account.competedIn < this.#round) continue
      lowest = Math.min(lowest, time)
      highest = Math.max(highest, time)
    }
    this.#virtualTime = clamp(this.#virtualTime + elapsed, lowest, highest + maxCreditMs)
    this.#startTime = Math.max(lowest, this.#virtualTime - maxCreditMs)
    this.#sumWeights()
  }

  /**
   * Departed tenants have at most half of the weight. Otherwise, the virtual time would stop while tenants arrive
   * and leave without end.
   */
  #sumWeights(): void {
    let [competing, departed] = [0, 0]
    for (const [tenant, { time, weight, competedIn }] of this.#accounts) {
      if (competedIn === this.#round) competing += weight
      else if (time > this.#startTime) departed += weight
      else this.#accounts.delete(tenant)
    }
    this.#totalWeight = competing + (this.#countsDeparted ? Math.min(competing, departed) : 0)
  }

  #lowestOf(competitors: readonly Competitor[]): number {
    return competitors.reduce(
      (lowest, { tenant }) => Math.min(lowest, this.timeOf(tenant)),
      Number.POSITIVE_INFINITY,
    )
  }
}
