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
  #virtualTime = 0
  /** Time at which a tenant starts, in ms. */
  #startTime = 0
  /** Time charged since competitors were last set, in ms. */
  #chargedMs = 0
  /** Sum of the weights of the tenants that compete, at least 1. */
  #totalWeight = 1

  /** Time that the tenant has used, in ms of virtual time. */
  timeOf(tenant: string): number {
    return this.#times.get(tenant) ?? this.#startTime
  }

  charge({ tenant, weight }: Competitor, ms: number): void {
    this.#times.set(tenant, this.timeOf(tenant) + ms / weight)
    this.#chargedMs += ms
  }

  /**
   * Sets the tenants that now compete for time. The others make up for nothing later.
   * @param competitors may list a tenant several times
   * @param waiting those of the tenants that want more time than they get. @default all
   */
  setCompetitors(competitors: readonly Competitor[], waiting = competitors): void {
    const weights = new Map(competitors.map(({ tenant, weight }) => [tenant, weight]))
    const competing = [...weights.keys()]
    if (competing.length === 0) this.#times.clear()
    else this.#advance(competing, waiting.length > 0 ? waiting.map(({ tenant }) => tenant) : competing)
    this.#chargedMs = 0
    this.#totalWeight = Math.max(
      1,
      [...weights.values()].reduce((sum, weight) => sum + weight, 0),
    )
    for (const [tenant, time] of this.#times)
      if (time <= this.#startTime && !weights.has(tenant)) this.#times.delete(tenant)
  }

  #advance(competing: readonly string[], waiting: readonly string[]): void {
    const lowestWaiting = Math.min(...this.#timesOf(waiting))
    const limit = (time: number): number => clamp(time, lowestWaiting - maxLeadMs, lowestWaiting + maxLeadMs)
    for (const tenant of [...this.#times.keys(), ...competing])
      this.#times.set(tenant, limit(this.timeOf(tenant)))
    const times = this.#timesOf(competing)
    const lowest = Math.min(...times)
    this.#virtualTime = clamp(
      this.#virtualTime + this.#chargedMs / this.#totalWeight,
      lowest,
      Math.max(...times) + maxCreditMs,
    )
    this.#startTime = Math.max(lowest, this.#virtualTime - maxCreditMs)
  }

  #timesOf(tenants: readonly string[]): readonly number[] {
    return tenants.map((tenant) => this.timeOf(tenant))
  }
}

const clamp = (value: number, min: number, max: number): number => Math.min(Math.max(value, min), max)
