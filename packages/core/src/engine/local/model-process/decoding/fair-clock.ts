/**
 * Shares time among tenants by start-time fair queueing (Goyal, Vin and Cheng, 1996). Each tenant has a virtual
 * time: what it has used, divided by its weight. The tenant with the lowest virtual time is next. A tenant that
 * arrives or returns starts at the lowest virtual time of the others, so time that it did not use is lost.
 */
import type { GenerationJob } from '../runner.ts'

/**
 * Maximum lead of a tenant over the lowest virtual time, in ms. A tenant may have used more while the others
 * needed no more. That is forgotten, so that the tenant does not wait until all others have used as much.
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

  /** Sets the tenants that now compete for time. The others make up for nothing later. */
  setCompetitors(tenants: Iterable<string>): void {
    const lowest = Math.min(...Array.from(tenants, (tenant) => this.timeOf(tenant)))
    if (lowest === Number.POSITIVE_INFINITY) {
      this.#times.clear()
      return
    }
    this.#floor = lowest
    for (const [tenant, time] of this.#times) {
      if (time <= lowest) this.#times.delete(tenant)
      else this.#times.set(tenant, Math.min(time, lowest + maxLeadMs))
    }
  }
}
