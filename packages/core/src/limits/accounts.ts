/**
 * The state of all subjects in memory, for one window. A subject that made no call for a window, runs nothing and owes nothing has full
 * buckets, and is forgotten. A whole generation is forgotten at once, so that no call waits while a million subjects are removed.
 */
import { type Bucket, type BucketSize, fullLevel, levelAt } from './bucket.ts'

export interface Account {
  requests?: SizedBucket
  tokens?: SizedBucket
  /** Calls that count against a concurrency limit. */
  running: number
}

/** A bucket with its last size. */
interface SizedBucket extends Bucket, BucketSize {}

export class Accounts {
  #recent = new Map<string, Account>()
  #previous = new Map<string, Account>()
  /** Accounts in debt or with running calls, which are kept however long ago their last call was. */
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

  /** Returns a new account for an unknown subject. Callers report changes by `update`. */
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
    if (sinceMs < 0) return // The clock was set back: a new window begins.
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
