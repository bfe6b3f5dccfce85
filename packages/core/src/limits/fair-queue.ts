/**
 * Who is next, where only so many get in at once: one of each caller in turn, so that nobody's hundred calls are in front of another's
 * first. Bounded: where it is full, the last call of the caller with most of them is the one too many.
 */
import { LlmError } from '../errors.ts'

export interface FairQueueOptions {
  /** How many are inside at once. */
  readonly permits: number
  /** How many wait, of all callers together. */
  readonly maxQueued: number
  /** @default a clock that nobody can set, in milliseconds */
  readonly now?: (() => number) | undefined
}

interface QueuedCall {
  admit(): void
  reject(error: LlmError): void
}

export class FairQueue {
  readonly #permits: number
  readonly #maxQueued: number
  readonly #now: () => number
  /** By caller, each in order of arrival; the first caller is the next. */
  readonly #callsByCaller = new Map<string, QueuedCall[]>()
  #queued = 0
  #admitted = 0
  /** How long one stays inside, of those that came lately. */
  #averageHoldMs: number | undefined

  constructor({ permits, maxQueued, now = () => performance.now() }: FairQueueOptions) {
    this.#permits = permits
    this.#maxQueued = maxQueued
    this.#now = now
  }

  get queued(): number {
    return this.#queued
  }

  /**
   * Resolves with the way out, or with nothing once the signal has aborted. Rejects with `overloaded`, and how long the queue
   * takes, where too many wait.
   */
  async acquire(caller: string, signal: AbortSignal): Promise<(() => void) | undefined> {
    if (signal.aborted || !(await this.#waitForPermit(caller, signal))) return undefined
    const admittedAt = this.#now()
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#admitted--
      const holdMs = this.#now() - admittedAt
      this.#averageHoldMs =
        this.#averageHoldMs === undefined ? holdMs : this.#averageHoldMs + (holdMs - this.#averageHoldMs) / 8
      this.#admit()
    }
  }

  #waitForPermit(caller: string, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#remove(caller, queuedCall)
        resolve(false)
      }
      const queuedCall: QueuedCall = {
        admit: () => {
          signal.removeEventListener('abort', leave)
          resolve(true)
        },
        reject: (error) => {
          signal.removeEventListener('abort', leave)
          reject(error)
        },
      }
      signal.addEventListener('abort', leave, { once: true })
      this.#callsOf(caller).push(queuedCall)
      this.#queued++
      this.#admit()
      if (this.#queued > this.#maxQueued) this.#rejectOne()
    })
  }

  #admit(): void {
    while (this.#admitted < this.#permits) {
      const [next] = this.#callsByCaller
      if (!next) return
      const [caller, calls] = next
      const queuedCall = calls.shift()
      // Behind all others, if there is more of it.
      this.#callsByCaller.delete(caller)
      if (calls.length > 0) this.#callsByCaller.set(caller, calls)
      this.#queued--
      this.#admitted++
      queuedCall?.admit()
    }
  }

  /** Of several longest lines, that of who came last. */
  #rejectOne(): void {
    let longest: [caller: string, line: QueuedCall[]] | undefined
    for (const entry of this.#callsByCaller)
      if (!longest || entry[1].length >= longest[1].length) longest = entry
    const [caller, calls] = longest ?? []
    const last = calls?.at(-1)
    if (caller === undefined || !last) return
    this.#remove(caller, last)
    last.reject(
      new LlmError('overloaded', 'Too many requests are waiting. Try again later.', {
        retryAfterMs: this.#estimateWaitMs(),
      }),
    )
  }

  #remove(caller: string, queuedCall: QueuedCall): void {
    const calls = this.#callsOf(caller)
    calls.splice(calls.indexOf(queuedCall), 1)
    if (calls.length === 0) this.#callsByCaller.delete(caller)
    this.#queued--
  }

  #callsOf(caller: string): QueuedCall[] {
    const calls = this.#callsByCaller.get(caller) ?? []
    this.#callsByCaller.set(caller, calls)
    return calls
  }

  #estimateWaitMs(): number {
    const rounds = Math.ceil(this.#queued / this.#permits)
    return Math.max(1_000, Math.ceil((this.#averageHoldMs ?? 0) * rounds))
  }
}
