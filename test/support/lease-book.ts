/** What is kept of prompts, by the rules alone: what surely is, and what may be. */
import type { CacheLifetime } from '@modelmount/core/engine'

interface Lease {
  readonly tenant: string
  readonly tokens: readonly number[]
  /** In milliseconds. */
  sure: { since: number; ttl: number }
  possible: { since: number; ttl: number }
}

const lifetimes = { '5m': 300_000, '1h': 3_600_000 } as const

export class LeaseBook {
  #leases: Lease[] = []

  /** How much of a prompt is kept, up to the limit: at least, and at most. */
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

  /** Up to here it was written. */
  write(tenant: string, tokens: readonly number[], lifetime: CacheLifetime, now: number): void {
    const time = { since: now, ttl: lifetimes[lifetime] }
    const same = this.#startsOf(tenant, tokens).find((lease) => lease.tokens.length === tokens.length)
    if (same) {
      same.sure = time
      same.possible = { since: now, ttl: Math.max(time.ttl, same.possible.ttl) }
    } else this.#leases.push({ tenant, tokens, sure: { ...time }, possible: { ...time } })
  }

  /** Up to the limit it was read, and up to the hour for an hour; who reads may have used more of it. */
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

  /** What has ended before it is used again stays ended. */
  forgetEnded(now: number): void {
    this.#leases = this.#leases.filter(({ possible }) => now - possible.since <= possible.ttl)
  }

  #startsOf(tenant: string, prompt: readonly number[]): readonly Lease[] {
    return this.#leases.filter(
      (lease) => lease.tenant === tenant && lease.tokens.every((token, at) => prompt[at] === token),
    )
  }
}
