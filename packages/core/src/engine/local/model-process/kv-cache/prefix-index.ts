/** Index of cached prompt prefixes, by tenant, with lifetimes and a size limit. */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { type CacheLifetime, cacheLifetimes } from '../../../request.ts'
import type { ProcessActivity } from '../../ipc/messages.ts'

export interface PromptPrefix {
  /** Cache partition: other tenants do not find the prefix. */
  readonly tenant: string
  readonly tokens: readonly number[]
  /**
   * Lifetime if the prefix is cached for a breakpoint. Other prefixes live for 5 minutes and are evicted
   * first.
   */
  readonly lifetime?: CacheLifetime | undefined
  readonly sizeBytes: number
}

/** Numbers by the reason. */
export type EvictedStates = ProcessActivity['evicted']
type EvictionCause = keyof EvictedStates

export class PrefixIndex<L extends PromptPrefix> {
  readonly #maxBytes: number
  readonly #entries: LRUCache<string, L>
  #reservedBytes = 0
  /** What was dropped since the start, other than by a replacement. */
  readonly evicted: EvictedStates = {
    expired: { states: 0, bytes: 0 },
    memory: { states: 0, bytes: 0 },
    deleted: { states: 0, bytes: 0 },
  }

  /**
   * @param onEvict called for every removed prefix, whatever the reason
   * @param now clock in ms. It must not return 0, which lru-cache treats as "no lifetime".
   */
  constructor(maxBytes: number, onEvict: (lease: L) => void, now = () => performance.now()) {
    this.#maxBytes = maxBytes
    this.#entries = new LRUCache<string, L>({
      maxSize: Math.max(1, maxBytes),
      sizeCalculation: ({ sizeBytes }) => Math.max(1, sizeBytes),
      ttl: cacheLifetimes['5m'],
      updateAgeOnGet: true,
      ttlAutopurge: true,
      ttlResolution: 0,
      perf: { now },
      dispose: (...[lease, , reason]) => {
        if (reason === 'expire') this.#count('expired', lease)
        onEvict(lease)
      },
    })
  }

  get count(): number {
    return this.#entries.size
  }

  get sizeBytes(): number {
    return this.#entries.calculatedSize
  }

  /** Finds the cached prefixes of this prompt, the longest first. */
  findPrefixes(tenant: string, prompt: readonly number[]): readonly L[] {
    return [...this.#entries.values()]
      .filter((lease) => lease.tenant === tenant && isPrefix(lease.tokens, prompt))
      .sort((a, b) => b.tokens.length - a.tokens.length)
  }

  get(tenant: string, tokens: readonly number[]): L | undefined {
    return this.#entries.peek(keyOf({ tenant, tokens }))
  }

  /** Adds a prefix, or replaces the entry with the same tokens. Returns `false` if there is no room. */
  add(lease: L): boolean {
    const key = keyOf(lease)
    this.#entries.delete(key)
    if (!this.#makeRoom(lease.sizeBytes, lease.lifetime !== undefined)) return false
    this.#entries.set(key, lease, { ttl: cacheLifetimes[lease.lifetime ?? '5m'] })
    return true
  }

  /** Restarts the lifetime of a prefix. With `1h`, extends it to an hour. */
  renew(lease: L, lifetime?: CacheLifetime): void {
    const key = keyOf(lease)
    if (this.#entries.get(key) !== lease || lifetime !== '1h') return
    this.#entries.set(key, lease, { ttl: cacheLifetimes[lifetime] })
  }

  delete(lease: L): void {
    this.#delete(lease, 'deleted')
  }

  #delete(lease: L, reason: EvictionCause): void {
    const key = keyOf(lease)
    if (this.#entries.peek(key) !== lease) return
    this.#count(reason, lease)
    this.#entries.delete(key)
  }

  #count(reason: EvictionCause, { sizeBytes }: L): void {
    this.evicted[reason].states++
    this.evicted[reason].bytes += sizeBytes
  }

  /** Deletes all prefixes of a tenant, and returns their number. */
  deleteTenant(tenant: string): number {
    const own = [...this.#entries.values()].filter((lease) => lease.tenant === tenant)
    for (const lease of own) this.delete(lease)
    return own.length
  }

  clear(): void {
    this.#entries.clear()
  }

  /**
   * Takes bytes of the size limit for something else. Returns `false` if there is no room.
   * @param canEvictBreakpoints whether prefixes that are cached for a breakpoint may be evicted
   */
  reserve(sizeBytes: number, canEvictBreakpoints = true): boolean {
    if (!this.#makeRoom(sizeBytes, canEvictBreakpoints)) return false
    this.#reservedBytes += sizeBytes
    return true
  }

  release(sizeBytes: number): void {
    this.#reservedBytes -= sizeBytes
  }

  /**
   * Evicts prefixes to make room. Prefixes that are cached for a breakpoint come last. Returns `false` if there
   * is no room.
   * @param canEvictBreakpoints whether prefixes that are cached for a breakpoint may be evicted
   */
  #makeRoom(sizeBytes: number, canEvictBreakpoints: boolean): boolean {
    this.#entries.purgeStale()
    const byLastUse = [...this.#entries.rvalues()].filter((one) => one !== undefined)
    const evictionOrder = [
      ...byLastUse.filter((one) => !one.lifetime),
      ...(canEvictBreakpoints ? byLastUse.filter((one) => one.lifetime) : []),
    ]
    const freeBytes = (): number => this.#maxBytes - this.sizeBytes - this.#reservedBytes
    const maxFreeable = evictionOrder.reduce((sum, one) => sum + one.sizeBytes, freeBytes())
    if (sizeBytes > maxFreeable) return false
    for (const one of evictionOrder) {
      if (sizeBytes <= freeBytes()) break
      this.#delete(one, 'memory')
    }
    return true
  }
}

const keyOf = ({ tenant, tokens }: Pick<PromptPrefix, 'tenant' | 'tokens'>): string =>
  createHash('sha256').update(`${tenant.length} ${tenant}`).update(Uint32Array.from(tokens)).digest('base64')

/** Compares from the end, since many prompts of an app begin with the same tokens. */
function isPrefix(tokens: readonly number[], prompt: readonly number[]): boolean {
  if (tokens.length > prompt.length) return false
  let index = tokens.length
  while (index > 0 && tokens[index - 1] === prompt[index - 1]) index--
  return index === 0
}
