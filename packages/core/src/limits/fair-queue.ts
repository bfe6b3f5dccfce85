/**
 * A bounded queue for a limited number of permits. Callers take turns, so a hundred calls of one caller do
 * not delay the first call of another. When the queue overflows, it rejects the newest call of the caller
 * with the most waiting calls. It also rejects each call that has waited too long.
 */
import { LlmError } from '../errors.ts'
import { WaitQueue } from '../util/wait-queue.ts'

export interface FairQueueOptions {
  /** How many calls may run at once. */
  readonly permits: number
  /** How many calls may wait, for all callers together. */
  readonly maxQueued: number
  /** How long a call may wait, in ms. @default forever */
  readonly timeoutMs?: number | undefined
  /** @default a monotonic clock, in milliseconds */
  readonly now?: (() => number) | undefined
}

/** The line of one caller's waiting calls. The line with the lowest `position` gets the next permit. */
interface CallerLine {
  readonly caller: string
  position: number
}

interface QueuedCall {
  readonly line: CallerLine
}

export class FairQueue {
  readonly #permits: number
  readonly #maxQueued: number
  readonly #timeoutMs: number
  readonly #now: () => number
  readonly #queue = new WaitQueue<QueuedCall>({
    select: (waiting) => (this.#admitted < this.#permits ? this.#selectNext(waiting) : undefined),
    admit: ({ line }) => {
      this.#admitted++
      // Moves the line behind the lines of all other callers.
      line.position = ++this.#lastPosition
    },
  })
  #lastPosition = 0
  #admitted = 0
  /** Moving average of the milliseconds between admission and release. */
  #averageHoldMs: number | undefined

  constructor(options: FairQueueOptions) {
    const {
      permits,
      maxQueued,
      timeoutMs = Number.POSITIVE_INFINITY,
      now = () => performance.now(),
    } = options
    this.#permits = permits
    this.#maxQueued = maxQueued
    this.#timeoutMs = timeoutMs
    this.#now = now
  }

  get queued(): number {
    return this.#queue.size
  }

  /**
   * Resolves with a function that releases the permit, or with `undefined` when the signal aborts first. When
   * more than `maxQueued` calls wait, one of these calls rejects with an `LlmError` `overloaded`, which
   * contains the estimated wait. So does a call that waits longer than `timeoutMs`.
   */
  async acquire(caller: string, signal: AbortSignal): Promise<(() => void) | undefined> {
    if (!(await this.#waitForPermit(caller, signal))) return undefined
    const admittedAt = this.#now()
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#admitted--
      const holdMs = this.#now() - admittedAt
      this.#averageHoldMs =
        this.#averageHoldMs === undefined ? holdMs : this.#averageHoldMs + (holdMs - this.#averageHoldMs) / 8
      this.#queue.pump()
    }
  }

  #waitForPermit(caller: string, signal: AbortSignal): Promise<boolean> {
    const line = this.#queue.waiting.find((call) => call.line.caller === caller)?.line
    const call: QueuedCall = { line: line ?? { caller, position: ++this.#lastPosition } }
    const admission = this.#queue.wait(call, signal)
    if (this.#queue.size > this.#maxQueued) this.#rejectOne()
    return this.#queue.has(call) ? this.#rejectLate(call, admission) : admission
  }

  async #rejectLate(call: QueuedCall, admission: Promise<boolean>): Promise<boolean> {
    if (this.#timeoutMs === Number.POSITIVE_INFINITY) return admission
    const reject = (): void =>
      this.#reject(call, `No turn came within ${this.#timeoutMs / 1_000} s. Try again later.`)
    const timer = setTimeout(reject, this.#timeoutMs)
    try {
      return await admission
    } finally {
      clearTimeout(timer)
    }
  }

  #selectNext(waiting: readonly QueuedCall[]): QueuedCall | undefined {
    return waiting.reduce<QueuedCall | undefined>(
      (next, call) => (next && next.line.position <= call.line.position ? next : call),
      undefined,
    )
  }

  /**
   * Rejects the newest call of the longest line. Among equally long lines, chooses the line whose turn comes
   * last.
   */
  #rejectOne(): void {
    const { waiting } = this.#queue
    const lengths = new Map<CallerLine, number>()
    for (const { line } of waiting) lengths.set(line, (lengths.get(line) ?? 0) + 1)
    const [longest] = [...lengths].sort(
      ([a, aLength], [b, bLength]) => bLength - aLength || b.position - a.position,
    )
    const last = waiting.findLast(({ line }) => line === longest?.[0])
    if (last) this.#reject(last, 'Too many requests are waiting. Try again later.')
  }

  #reject(call: QueuedCall, message: string): void {
    const retryAfterMs = this.#estimateWaitMs(this.#queue.size - 1)
    this.#queue.reject(call, new LlmError('overloaded', message, { retryAfterMs }))
  }

  #estimateWaitMs(queued: number): number {
    const rounds = Math.ceil(queued / this.#permits)
    return Math.max(1_000, Math.ceil((this.#averageHoldMs ?? 0) * rounds))
  }
}
