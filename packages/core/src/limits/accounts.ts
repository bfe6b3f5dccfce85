/**
 * Stores in memory the buckets and the running calls of each subject, for limits with the same window. An
 * account with full buckets and without running calls is not stored. So rejected calls, whose ids a client
 * may invent, store nothing. Other accounts are dropped after one to two windows without a call, because
 * their buckets are full again by then. Accounts with debt or running calls stay. The others are dropped a
 * whole map at a time, so that no call waits while a million are removed.
 */
import type { LimitName } from './admission.ts'
import { type Bucket, type BucketSize, fullLevel, levelAt } from './bucket.ts'

export interface Account extends Partial<Record<LimitName, SizedBucket>> {
  /** Number of running calls that count against a concurrency limit. */
  running: number
}

/** A bucket, with the limit and the window of the last call that used it. */
interface SizedBucket extends Bucket, BucketSize {}

export class Accounts {
  #recent = new Map<string, Account>()
  #previous = new Map<string, Account>()
  /** Accounts with debt or running calls. They stay, however old their last call is. */
  readonly #open = new Map<string, Account>()
  readonly #windowMs: number
  #rotatedAt = 0

  /** @param windowMs the time in which an empty bucket is full again */
  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  get size(): number {
    return this.#recent.size + this.#previous.size + this.#open.size
  }

  /** Returns the account of a subject. Undefined if all its buckets are full and none of its calls runs. */
  find(id: string, now: number): Account | undefined {
    this.#rotate(now)
    return this.#recent.get(id) ?? this.#previous.get(id) ?? this.#open.get(id)
  }

  /** Stores a new or changed account, or drops it if it is idle. */
  save(id: string, account: Account, now: number): void {
    if (isIdle(account, now)) {
      for (const accounts of [this.#recent, this.#previous, this.#open]) accounts.delete(id)
      return
    }
    this.#recent.set(id, account)
    if (isOpen(account)) this.#open.set(id, account)
    else if (this.#open.size > 0) this.#open.delete(id)
  }

  #rotate(now: number): void {
    const sinceMs = now - this.#rotatedAt
    if (sinceMs >= 0 && sinceMs < this.#windowMs) return
    this.#rotatedAt = now
    if (sinceMs < 0) return // The clock was set back, so a new window begins.
    this.#previous = this.#recent
    this.#recent = new Map()
    for (const [id, account] of this.#open) if (isIdle(account, now)) this.#open.delete(id)
  }
}

const isOpen = ({ running, ...buckets }: Account): boolean =>
  running > 0 || Object.values(buckets).some(({ level }) => level < 0)

const isIdle = ({ running, ...buckets }: Account, now: number): boolean =>
  running === 0 && Object.values(buckets).every((bucket) => isFull(bucket, now))

const isFull = (bucket: SizedBucket, now: number): boolean =>
  levelAt(bucket, bucket, now) === fullLevel(bucket)
