/**
 * Shares time among tenants by start-time fair queueing (Goyal, Vin and Cheng, 1996). Each tenant has a virtual
 * time: what it has used, divided by its weight. The tenant with the lowest virtual time is next. A tenant that
 * arrives or returns starts at the lowest virtual time of the others, so time that it did not use is lost.
 */
import type { GenerationJob } from '../runner.ts'

/**
 * Maximum lead of a tenant over the first one that waits, in ms. A tenant may have used more while the others wanted
 * no more. That is forgotten, so that the tenant does not wait until all others have used as much. A tenant that
 * does not wait is behind by at most the same time.
 */
const maxLeadMs = 1_000

type Usage = Pick<GenerationJob, 'tenant' | 'weight'>

export class FairClock {
  /** Virtual times above `#floor`, in ms. */
  readonly #times = new Map<string, number>()
  #floor = 0

  /** Virtual time of the tenant, in ms. */
  timeOf(tenant: string): number {
    return this.#times.get(tenant) ?? this.#floor
  }

  charge({ tenant, weight }: Usage, ms: number): void {
    this.#times.set(tenant, this.timeOf(tenant) + ms / weight)
  }

  /**
   * Sets the tenants that now compete for time. The others make up for nothing later.
   * @param waiting those of the tenants that want more time than they get. @default all
   */
  setCompetitors(tenants: readonly string[], waiting = tenants): void {
    if (tenants.length === 0) {
      this.#times.clear()
      return
    }
    const lowestOf = (some: readonly string[]): number => Math.min(...some.map((one) => this.timeOf(one)))
    const lowest = lowestOf(tenants)
    const lowestWaiting = waiting.length > 0 ? lowestOf(waiting) : lowest
    this.#floor = Math.max(lowest, lowestWaiting - maxLeadMs)
    for (const [tenant, time] of this.#times) {
      if (time <= this.#floor) this.#times.delete(tenant)
      else this.#times.set(tenant, Math.min(time, lowestWaiting + maxLeadMs))
    }
  }
}
