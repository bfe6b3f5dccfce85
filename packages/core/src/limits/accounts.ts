/**
 * Stores in memory the buckets and the running calls of each subject, for limits with the same window. A
 * subject's account is dropped after one to two windows without a call, because its buckets are full again by
 * then. Accounts with debt or running calls stay. The others are dropped a whole map at a time, so that no
 * call waits while a million are removed.
 */
import { type Bucket, type BucketSize, fullLevel, levelAt } from './bucket.ts'

export interface Account {
  requests?: SizedBucket
  tokens?: SizedBucket
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

  /** Returns the account of a subject, or a new one. Call `update` after changing the account. */
  get(id: string, now: number): Account {
    this.#rotate(now)
    const recent = this.#recent.get(id)
    if (recent) return recent
    const account = this.#previous.get(id) ?? this.#open.get(id) ?? { running: 0 }
    this.#recent.set(id, account)
    return account
  }

  update(id: string, account: Account): void {
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

const isOpen = ({ running, requests, tokens }: Account): boolean =>
  running > 0 || (requests !== undefined && requests.level < 0) || (tokens !== undefined && tokens.level < 0)

const isIdle = ({ running, requests, tokens }: Account, now: number): boolean =>
  running === 0 &&
  [requests, tokens].every((bucket) => !bucket || levelAt(bucket, bucket, now) === fullLevel(bucket))
