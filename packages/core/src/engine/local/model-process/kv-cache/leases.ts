/** Which beginnings of prompts are kept, for whom, and until when. */
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { type CacheLifetime, cacheLifetimes } from '../../../request.ts'

/** The beginning of a prompt whose state is kept. */
export interface Lease {
  /** Nobody else finds it. */
  readonly tenant: string
  readonly tokens: readonly number[]
  /** A call has asked for it by a breakpoint; absent: it is kept while there is room. */
  readonly lifetime?: CacheLifetime | undefined
  readonly sizeBytes: number
}

export class Leases<L extends Lease> {
  readonly #maxBytes: number
  readonly #all: LRUCache<string, L>

  /**
   * @param onEnd its time is over, or its room is needed
   * @param now in milliseconds, from anywhere but 0
   */
  constructor(maxBytes: number, onEnd: (lease: L) => void, now = () => performance.now()) {
    this.#maxBytes = maxBytes
    this.#all = new LRUCache<string, L>({
      maxSize: Math.max(1, maxBytes),
      sizeCalculation: ({ sizeBytes }) => Math.max(1, sizeBytes),
      ttl: cacheLifetimes['5m'],
      updateAgeOnGet: true,
      ttlAutopurge: true,
      ttlResolution: 0,
      perf: { now },
      dispose: onEnd,
    })
  }

  get sizeBytes(): number {
    return this.#all.calculatedSize
  }

  /** Those of a tenant that the prompt begins with, the longest first. */
  of(tenant: string, prompt: readonly number[]): readonly L[] {
    return [...this.#all.values()]
      .filter((lease) => lease.tenant === tenant && isStart(lease.tokens, prompt))
      .sort((a, b) => b.tokens.length - a.tokens.length)
  }

  get(tenant: string, tokens: readonly number[]): L | undefined {
    return this.#all.peek(keyOf({ tenant, tokens }))
  }

  /** In the place of one with the same tokens. `false`: there is no room for it. */
  keep(lease: L): boolean {
    const key = keyOf(lease)
    this.#all.delete(key)
    if (!this.#makeRoom(lease)) return false
    this.#all.set(key, lease, { ttl: cacheLifetimes[lease.lifetime ?? '5m'] })
    return true
  }

  /** Its time begins anew, and is an hour from now on where that is asked for. */
  renew(lease: L, lifetime?: CacheLifetime): void {
    const key = keyOf(lease)
    if (this.#all.get(key) !== lease || lifetime !== '1h') return
    this.#all.set(key, lease, { ttl: cacheLifetimes[lifetime] })
  }

  drop(lease: L): void {
    const key = keyOf(lease)
    if (this.#all.peek(key) === lease) this.#all.delete(key)
  }

  clear(): void {
    this.#all.clear()
  }

  /** What nobody has asked for goes first, and never makes room for its like what somebody has asked for. */
  #makeRoom({ sizeBytes, lifetime }: L): boolean {
    this.#all.purgeStale()
    const unused = [...this.#all.rvalues()].filter((one) => one !== undefined)
    const order = [
      ...unused.filter((one) => !one.lifetime),
      ...(lifetime ? unused.filter((one) => one.lifetime) : []),
    ]
    const free = (): number => this.#maxBytes - this.sizeBytes
    const most = order.reduce((sum, one) => sum + one.sizeBytes, free())
    if (sizeBytes > most) return false
    for (const one of order) {
      if (sizeBytes <= free()) break
      this.drop(one)
    }
    return true
  }
}

const keyOf = ({ tenant, tokens }: Pick<Lease, 'tenant' | 'tokens'>): string =>
  createHash('sha256').update(`${tenant.length} ${tenant}`).update(Uint32Array.from(tokens)).digest('base64')

/** From the back: prompts of one app begin alike. */
function isStart(tokens: readonly number[], prompt: readonly number[]): boolean {
  if (tokens.length > prompt.length) return false
  let index = tokens.length
  while (index > 0 && tokens[index - 1] === prompt[index - 1]) index--
  return index === 0
}
