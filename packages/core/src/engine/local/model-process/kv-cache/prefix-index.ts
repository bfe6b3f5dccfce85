/** Which beginnings of prompts are kept, for whom, and until when. */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { type CacheLifetime, cacheLifetimes } from '../../../request.ts'

/** The beginning of a prompt whose state is kept. */
export interface PromptPrefix {
  /** Nobody else finds it. */
  readonly tenant: string
  readonly tokens: readonly number[]
  /** A call has asked for it by a breakpoint; absent: it is kept while there is room. */
  readonly lifetime?: CacheLifetime | undefined
  readonly sizeBytes: number
}

export class PrefixIndex<L extends PromptPrefix> {
  readonly #maxBytes: number
  readonly #entries: LRUCache<string, L>

  /**
   * @param onEvict its time is over, or its room is needed
   * @param now in milliseconds, from anywhere but 0
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
      dispose: onEvict,
    })
  }

  get sizeBytes(): number {
    return this.#entries.calculatedSize
  }

  /** Those of a tenant that the prompt begins with, the longest first. */
  findPrefixes(tenant: string, prompt: readonly number[]): readonly L[] {
    return [...this.#entries.values()]
      .filter((lease) => lease.tenant === tenant && isPrefix(lease.tokens, prompt))
      .sort((a, b) => b.tokens.length - a.tokens.length)
  }

  get(tenant: string, tokens: readonly number[]): L | undefined {
    return this.#entries.peek(keyOf({ tenant, tokens }))
  }

  /** In the place of one with the same tokens. `false`: there is no room for it. */
  add(lease: L): boolean {
    const key = keyOf(lease)
    this.#entries.delete(key)
    if (!this.#makeRoom(lease)) return false
    this.#entries.set(key, lease, { ttl: cacheLifetimes[lease.lifetime ?? '5m'] })
    return true
  }

  /** Its time begins anew, and is an hour from now on where that is asked for. */
  renew(lease: L, lifetime?: CacheLifetime): void {
    const key = keyOf(lease)
    if (this.#entries.get(key) !== lease || lifetime !== '1h') return
    this.#entries.set(key, lease, { ttl: cacheLifetimes[lifetime] })
  }

  delete(lease: L): void {
    const key = keyOf(lease)
    if (this.#entries.peek(key) === lease) this.#entries.delete(key)
  }

  clear(): void {
    this.#entries.clear()
  }

  /** What nobody has asked for goes first, and never makes room for its like what somebody has asked for. */
  #makeRoom({ sizeBytes, lifetime }: L): boolean {
    this.#entries.purgeStale()
    const byLastUse = [...this.#entries.rvalues()].filter((one) => one !== undefined)
    const evictionOrder = [
      ...byLastUse.filter((one) => !one.lifetime),
      ...(lifetime ? byLastUse.filter((one) => one.lifetime) : []),
    ]
    const freeBytes = (): number => this.#maxBytes - this.sizeBytes
    const maxFreeable = evictionOrder.reduce((sum, one) => sum + one.sizeBytes, freeBytes())
    if (sizeBytes > maxFreeable) return false
    for (const one of evictionOrder) {
      if (sizeBytes <= freeBytes()) break
      this.delete(one)
    }
    return true
  }
}

const keyOf = ({ tenant, tokens }: Pick<PromptPrefix, 'tenant' | 'tokens'>): string =>
  createHash('sha256').update(`${tenant.length} ${tenant}`).update(Uint32Array.from(tokens)).digest('base64')

/** From the back: prompts of one app begin alike. */
function isPrefix(tokens: readonly number[], prompt: readonly number[]): boolean {
  if (tokens.length > prompt.length) return false
  let index = tokens.length
  while (index > 0 && tokens[index - 1] === prompt[index - 1]) index--
  return index === 0
}
