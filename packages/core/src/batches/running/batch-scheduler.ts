/** Decides whose batch is next: tenants take turns, and the oldest batch of a tenant comes first. */
import type { ActiveBatch } from '../batch.ts'

/**
 * How long one batch is served before the next tenant's, in ms. Long enough to be worth the load of another model, and
 * the evaluation of another common prefix.
 */
const turnMs = 15_000

export class BatchScheduler {
  readonly #now: () => number
  /** When a tenant was last served, by tenant. */
  readonly #servedAt = new Map<string, number>()
  #current: { readonly id: string; readonly since: number } | undefined

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** @param active the oldest batch first */
  inOrder(active: readonly ActiveBatch[]): readonly ActiveBatch[] {
    const tenants = new Set(active.map(({ tenant }) => tenant))
    for (const tenant of this.#servedAt.keys()) if (!tenants.has(tenant)) this.#servedAt.delete(tenant)
    const { id, since } = this.#current ?? { id: undefined, since: 0 }
    const isTurnOver = this.#now() - since >= turnMs
    const rankOf = (batch: ActiveBatch): number =>
      batch.id === id && !isTurnOver ? -1 : (this.#servedAt.get(batch.tenant) ?? 0)
    return active.toSorted((a, b) => rankOf(a) - rankOf(b))
  }

  onTaken({ id, tenant }: ActiveBatch): void {
    const now = this.#now()
    if (this.#current?.id !== id || now - this.#current.since >= turnMs) this.#current = { id, since: now }
    this.#servedAt.set(tenant, now)
  }
}
