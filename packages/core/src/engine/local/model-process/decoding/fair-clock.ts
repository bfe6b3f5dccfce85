/**
 * Shares time among tenants by fair queueing with a virtual time (Bennett and Zhang, WF2Q+, 1996). Each tenant has a
 * time: what it has used, divided by its weight. The tenant with the lowest time is next. The virtual time is what
 * each tenant would have used with equal shares. A tenant that arrives or returns starts a little before it, so time
 * that it did not use is lost, and tenants that arrive one after the other do not put off the others for ever.
 */
import type { GenerationJob } from '../runner.ts'

/**
 * Maximum lead of a tenant over the first one that waits, in ms. A tenant may have used more while the others wanted
 * no more. That is forgotten, so that the tenant does not wait until all others have used as much. A tenant that
 * does not wait is behind by at most the same time.
 */
const maxLeadMs = 1_000
/** How long before the virtual time a tenant starts at most, in ms, so that its first call is served soon. */
const maxCreditMs = 250

export type Competitor = Pick<GenerationJob, 'tenant' | 'weight'>

export class FairClock {
  /** In ms. Of tenants that do not compete, only those after `#startTime` are kept. */
  readonly #times = new Map<string, number>()
  /** Weights of the tenants that compete. */
  readonly #weights = new Map<string, number>()
  #virtualTime = 0
  /** Time at which a tenant starts, in ms. */
  #startTime = 0
  /** Time charged since competitors were last set, in ms. */
  #chargedMs = 0

  /** Time that the tenant has used, in ms of virtual time. */
  timeOf(tenant: string): number {
    return this.#times.get(tenant) ?? this.#startTime
  }

  charge({ tenant, weight }: Competitor, ms: number): void {
    this.#times.set(tenant, this.timeOf(tenant) + ms / weight)
    this.#chargedMs += ms
  }

  /**
   * Sets the tenants that now compete for time. The others make up for nothing later. Called before each step, so
   * it creates no objects.
   * @param competitors may list a tenant several times
   * @param waiting those of the tenants that want more time than they get. @default all
   */
  setCompetitors(competitors: readonly Competitor[], waiting = competitors): void {
    let totalWeight = 0
    for (const weight of this.#weights.values()) totalWeight += weight
    const elapsed = this.#chargedMs / Math.max(1, totalWeight)
    this.#chargedMs = 0
    this.#weights.clear()
    for (const { tenant, weight } of competitors) this.#weights.set(tenant, weight)
    if (competitors.length === 0) this.#times.clear()
    else this.#advance(elapsed, this.#lowestOf(waiting.length > 0 ? waiting : competitors))
  }

  #advance(elapsed: number, lowestWaiting: number): void {
    for (const tenant of this.#weights.keys()) this.#times.set(tenant, this.timeOf(tenant))
    let [lowest, highest] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
    for (const [tenant, time] of this.#times) {
      const limited = clamp(time, lowestWaiting - maxLeadMs, lowestWaiting + maxLeadMs)
      this.#times.set(tenant, limited)
      if (!this.#weights.has(tenant)) continue
      lowest = Math.min(lowest, limited)
      highest = Math.max(highest, limited)
    }
    this.#virtualTime = clamp(this.#virtualTime + elapsed, lowest, highest + maxCreditMs)
    this.#startTime = Math.max(lowest, this.#virtualTime - maxCreditMs)
    for (const [tenant, time] of this.#times)
      if (time <= this.#startTime && !this.#weights.has(tenant)) this.#times.delete(tenant)
  }

  #lowestOf(competitors: readonly Competitor[]): number {
    return competitors.reduce(
      (lowest, { tenant }) => Math.min(lowest, this.timeOf(tenant)),
      Number.POSITIVE_INFINITY,
    )
  }
}

const clamp = (value: number, min: number, max: number): number => Math.min(Math.max(value, min), max)
