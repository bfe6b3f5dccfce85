/**
 * Counts failed authentications by client address, as `addressKey` returns it. The limit of an address refills
 * continuously over a minute.
 */
import { LRUCache } from 'lru-cache'
import {
  type Bucket,
  type BucketSize,
  fullLevel,
  levelAfter,
  levelAt,
  minuteMs,
  waitMs,
} from '../../limits/bucket.ts'

/** The least recently used address beyond this number is forgotten. */
const maxAddresses = 10_000

export class FailedAuthentications {
  readonly #buckets = new LRUCache<string, Bucket>({ max: maxAddresses })
  readonly #size: BucketSize
  readonly #now: () => number

  /** @param now returns whole milliseconds of a monotonic clock */
  constructor(perMinute: number, now = monotonicMs) {
    this.#size = { limit: perMinute, windowMs: minuteMs }
    this.#now = now
  }

  /** Number of addresses in memory. */
  get size(): number {
    return this.#buckets.size
  }

  /** Counts a failure. Returns 0, or the milliseconds until the address may fail again if it is over the limit. */
  count(address: string): number {
    const retryAfterMs = waitMs(this.#levelOf(address), this.#size, 1)
    if (retryAfterMs === 0) this.#take(address, 1)
    return retryAfterMs
  }

  /** Reverts a call of `count` that returned 0. */
  uncount(address: string): void {
    this.#take(address, -1)
  }

  #take(address: string, failures: number): void {
    const level = levelAfter(this.#levelOf(address), this.#size, failures)
    this.#buckets.set(address, { level, at: this.#now() })
  }

  #levelOf(address: string): number {
    const bucket = this.#buckets.get(address)
    return bucket ? levelAt(bucket, this.#size, this.#now()) : fullLevel(this.#size)
  }
}

const monotonicMs = (): number => Math.floor(performance.now())
