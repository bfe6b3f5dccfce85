/**
 * A bounded queue for a limited number of permits. Tenants take turns, so a hundred calls of one tenant do not
 * delay the first call of another. A tenant gets its share of the permits even while others hold them all, because
 * the engine then shares its time among more tenants. The first call of each of up to 512 tenants does not wait.
 * When the queue overflows, it rejects the newest call of the tenant with the most waiting calls. It also rejects
 * each call that has waited too long.
 */
import { LlmError } from '../errors.ts'
import { WaitQueue } from '../util/wait-queue.ts'

export interface FairQueueOptions {
  /**
   * How many calls may run at once. More may run while a tenant holds more than its share: `permits` times its
   * weight, divided by the weights of all tenants, but at least one. Each of up to 512 tenants gets this one permit
   * even when the queue is full.
   */
  readonly permits: number
  /**
   * How many calls may wait, for all tenants together. Calls above `permits` that run count as waiting, too. So
   * at most `permits` and `maxQueued` calls together run, apart from the first calls of up to 512 tenants.
   */
  readonly maxQueued: number
  /** How long a call may wait, in ms. @default forever */
  readonly timeoutMs?: number | undefined
  /** @default a monotonic clock, in milliseconds */
  readonly now?: (() => number) | undefined
}

/** When the queue is full and so many tenants have permits, the first call of another tenant waits, too. */
const maxTenants = 512

/** The line of a tenant's calls. */
interface TenantLine {
  readonly tenant: string
  /** Weight of its last call. */
  weight: number
  /** Number of permits that its calls hold. */
  held: number
  /** Several lines may have equally many permits for their weight. Then the lowest position is next. */
  position: number
}

interface QueuedCall {
  readonly line: TenantLine
}

export class FairQueue {
  readonly #permits: number
  readonly #maxQueued: number
  readonly #timeoutMs: number
  readonly #now: () => number
  readonly #queue = new WaitQueue<QueuedCall>({
    select: (waiting) => this.#selectNext(waiting),
    admit: ({ line }) => {
      this.#admitted++
      line.held++
      this.#holding.add(line)
      // Moves the line behind the lines of all other tenants.
      line.position = ++this.#lastPosition
    },
  })
  /** Lines with permits. */
  readonly #holding = new Set<TenantLine>()
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

  /** Whether a further call of a tenant with calls in the queue would be rejected. */
  get isFull(): boolean {
    const excess = Math.max(0, this.#admitted - this.#permits)
    return this.#admitted >= this.#permits && this.#queue.size + excess >= this.#maxQueued
  }

  /**
   * Resolves with a function that releases the permit, or with `undefined` when the signal aborts first. When
   * more than `maxQueued` calls wait, one of these calls rejects with an `LlmError` `overloaded`, which
   * contains the estimated wait. So does a call that waits longer than `timeoutMs`.
   */
  async acquire(tenant: string, signal: AbortSignal, weight = 1): Promise<(() => void) | undefined> {
    const line = this.#findLine(tenant) ?? { tenant, weight, held: 0, position: ++this.#lastPosition }
    line.weight = weight
    if (!(await this.#waitForPermit(line, signal))) return undefined
    const admittedAt = this.#now()
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#admitted--
      line.held--
      if (line.held === 0) this.#holding.delete(line)
      const holdMs = this.#now() - admittedAt
      this.#averageHoldMs =
        this.#averageHoldMs === undefined ? holdMs : this.#averageHoldMs + (holdMs - this.#averageHoldMs) / 8
      this.#queue.pump()
    }
  }

  /** Lines with permits or waiting calls. */
  get #lines(): readonly TenantLine[] {
    return [...new Set([...this.#holding, ...this.#queue.waiting.map(({ line }) => line)])]
  }

  #findLine(tenant: string): TenantLine | undefined {
    for (const line of this.#holding) if (line.tenant === tenant) return line
    return this.#queue.waiting.find(({ line }) => line.tenant === tenant)?.line
  }

  #waitForPermit(line: TenantLine, signal: AbortSignal): Promise<boolean> {
    const call: QueuedCall = { line }
    const admission = this.#queue.wait(call, signal)
    const excess = Math.max(0, this.#admitted - this.#permits)
    if (this.#queue.size > 0 && this.#queue.size + excess > this.#maxQueued) this.#rejectOne()
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
    const candidates = this.#admitted < this.#permits + this.#maxQueued ? waiting : this.#selectFirst(waiting)
    if (candidates.length === 0) return undefined
    const totalWeight = this.#lines.reduce((sum, { weight }) => sum + weight, 0)
    const shareOf = ({ weight }: TenantLine): number =>
      Math.max(1, Math.floor((this.#permits * weight) / totalWeight))
    const canEnter = (line: TenantLine): boolean =>
      this.#admitted < this.#permits || line.held < shareOf(line)
    const compare = (a: TenantLine, b: TenantLine): number =>
      a.held / a.weight - b.held / b.weight || a.position - b.position
    return candidates
      .filter(({ line }) => canEnter(line))
      .reduce<QueuedCall | undefined>(
        (next, call) => (next && compare(next.line, call.line) <= 0 ? next : call),
        undefined,
      )
  }

  /** Selects the calls that may enter above `permits` and `maxQueued`: the first ones of their tenants. */
  #selectFirst(waiting: readonly QueuedCall[]): readonly QueuedCall[] {
    return this.#holding.size < maxTenants ? waiting.filter(({ line }) => line.held === 0) : []
  }

  /**
   * Rejects the newest call of the longest line. Among equally long lines, chooses the line whose turn comes
   * last.
   */
  #rejectOne(): void {
    const { waiting } = this.#queue
    const lengths = new Map<TenantLine, number>()
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
