/**
 * Renews the leases of the running calls of this process. A lease expires 9 s after its last renewal, so the calls of a
 * killed process count for 9 s at most.
 */

interface OwnCall {
  /** Keys of the sorted sets with its lease. */
  readonly keys: readonly string[]
  /** When the lease was last renewed, by the clock of this process. */
  renewedAt: number
}

export type RenewedLeases = ReadonlyMap<string, readonly string[]>

export class OwnCalls {
  readonly #calls = new Map<string, OwnCall>()
  readonly #now: () => number
  readonly #write: (leases: RenewedLeases) => Promise<void>
  #timer: NodeJS.Timeout | undefined
  #renewing: Promise<void> | undefined
  #isClosed = false

  /** @param write renews leases, by the key of their sorted set */
  constructor(now: () => number, write: (leases: RenewedLeases) => Promise<void>) {
    this.#now = now
    this.#write = write
  }

  /** Renews a lease every 2 s from now on, until `release`. @param renewedAt when it was requested */
  track(lease: string, keys: readonly string[], renewedAt: number): void {
    this.#calls.set(lease, { keys, renewedAt })
    // A failed renewal is repeated at the next interval.
    if (!this.#isClosed)
      this.#timer ??= setInterval(() => void this.renew().catch(() => {}), renewEveryMs).unref()
  }

  /** Returns the leases of a sorted set that may have expired, because this process slept or the server was away. */
  overdue(key: string): readonly string[] {
    const before = this.#now() - 2 * renewEveryMs
    return [...this.#calls].flatMap(([lease, { keys, renewedAt }]) =>
      renewedAt <= before && keys.includes(key) ? [lease] : [],
    )
  }

  /** Stops renewing a lease. When this resolves, no renewal can add it again. */
  async release(lease: string): Promise<void> {
    this.#calls.delete(lease)
    if (this.#calls.size === 0) this.#stopTimer()
    await this.#renewing?.catch(() => {})
  }

  /** Renews all leases now. Rejects if the server is unavailable. */
  renew(): Promise<void> {
    this.#renewing ??= this.#renewAll().finally(() => {
      this.#renewing = undefined
    })
    return this.#renewing
  }

  close(): void {
    this.#isClosed = true
    this.#stopTimer()
  }

  async #renewAll(): Promise<void> {
    const all = [...this.#calls]
    for (let from = 0; from < all.length; from += batchSize) {
      const batch = all.slice(from, from + batchSize).filter(([lease]) => this.#calls.has(lease))
      const leases = new Map<string, string[]>()
      for (const [lease, { keys }] of batch)
        for (const key of keys) leases.set(key, [...(leases.get(key) ?? []), lease])
      const at = this.#now()
      await this.#write(leases)
      for (const [, call] of batch) call.renewedAt = at
    }
  }

  #stopTimer(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

const renewEveryMs = 2_000
/** Leases per script. */
const batchSize = 200
