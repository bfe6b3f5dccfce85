/**
 * A model of the prompt cache, computed from the rules alone. For each cached prefix it knows the time until
 * which it must be cached, and the time until which it may be cached.
 */
import type { CacheLifetime } from '@modelmount/core/engine'

interface Lease {
  readonly tenant: string
  readonly tokens: readonly number[]
  /** The prefix must be cached from `since` until `ttl` ms later. */
  sure: { since: number; ttl: number }
  /** The prefix may be cached from `since` until `ttl` ms later. */
  possible: { since: number; ttl: number }
}

const lifetimes = { '5m': 300_000, '1h': 3_600_000 } as const

export class LeaseBook {
  #leases: Lease[] = []

  /**
   * Cached tokens of a prompt, at least and at most. `limit` is the last position that a call may read, in
   * tokens.
   */
  kept(tenant: string, prompt: readonly number[], limit: number, now: number): readonly [number, number] {
    const starts = this.#startsOf(tenant, prompt).filter(({ tokens }) => tokens.length <= limit)
    const longest = (which: 'sure' | 'possible'): number =>
      Math.max(
        0,
        ...starts
          .filter((lease) => now - lease[which].since <= lease[which].ttl)
          .map(({ tokens }) => tokens.length),
      )
    return [longest('sure'), longest('possible')]
  }

  /** A call has written `tokens` to the cache. */
  write(tenant: string, tokens: readonly number[], lifetime: CacheLifetime, now: number): void {
    const time = { since: now, ttl: lifetimes[lifetime] }
    const same = this.#startsOf(tenant, tokens).find((lease) => lease.tokens.length === tokens.length)
    if (same) {
      same.sure = time
      same.possible = { since: now, ttl: Math.max(time.ttl, same.possible.ttl) }
    } else this.#leases.push({ tenant, tokens, sure: { ...time }, possible: { ...time } })
  }

  /**
   * A call has read the cache up to `limit` tokens, which renews the lifetimes. Up to `hour` tokens, they
   * become one hour. The call may have used more tokens than `limit`.
   */
  read(tenant: string, prompt: readonly number[], limit: number, hour: number, now: number): void {
    for (const { tokens, sure, possible } of this.#startsOf(tenant, prompt)) {
      possible.since = now
      if (tokens.length <= hour) possible.ttl = lifetimes['1h']
      if (tokens.length > limit || now - sure.since > sure.ttl) continue
      sure.since = now
      if (tokens.length <= hour) sure.ttl = lifetimes['1h']
    }
  }

  clear(): void {
    this.#leases = []
  }

  /** Removes all expired prefixes: a later call must not renew them. */
  forgetEnded(now: number): void {
    this.#leases = this.#leases.filter(({ possible }) => now - possible.since <= possible.ttl)
  }

  #startsOf(tenant: string, prompt: readonly number[]): readonly Lease[] {
    return this.#leases.filter(
      (lease) => lease.tenant === tenant && lease.tokens.every((token, at) => prompt[at] === token),
    )
  }
}
