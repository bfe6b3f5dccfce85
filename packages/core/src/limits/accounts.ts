/**
 * What is known of each subject, in memory. Who has not come for a minute, runs nothing and owes nothing has full buckets, and is
 * forgotten: a generation at a time, so that nobody waits while a million are.
 */
import { type Bucket, fullLevel, levelAt, levelPerUnit } from './bucket.ts'

export interface Account {
  requests?: LimitedBucket
  tokens?: LimitedBucket
  /** Calls that are one of so many at the same time. */
  running: number
}

/** With the limit that it had last. */
interface LimitedBucket extends Bucket {
  readonly limit: number
}

export class Accounts {
  #recent = new Map<string, Account>()
  #previous = new Map<string, Account>()
  /** Not forgotten, whenever they came. */
  readonly #open = new Map<string, Account>()
  #rotatedAt = 0

  get size(): number {
    return this.#recent.size + this.#previous.size + this.#open.size
  }

  /** Of whom nothing is known, a new one. Whoever changes it says so. */
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
    if (sinceMs >= 0 && sinceMs < fillMs) return
    this.#rotatedAt = now
    if (sinceMs < 0) return // The clock went back: a minute begins.
    this.#previous = this.#recent
    this.#recent = new Map()
    for (const [id, account] of this.#open) if (isIdle(account, now)) this.#open.delete(id)
  }
}

/** In which an empty bucket gets full, by what a limit is. */
const fillMs = levelPerUnit

const isOpen = ({ running, requests, tokens }: Account): boolean =>
  running > 0 || (requests !== undefined && requests.level < 0) || (tokens !== undefined && tokens.level < 0)

const isIdle = ({ running, requests, tokens }: Account, now: number): boolean =>
  running === 0 &&
  [requests, tokens].every(
    (bucket) => !bucket || levelAt(bucket, bucket.limit, now) === fullLevel(bucket.limit),
  )
