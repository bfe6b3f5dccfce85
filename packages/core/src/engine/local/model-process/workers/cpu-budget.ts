/**
 * CPU time that calls spend on text before and beside decoding: rendering, tokenizing, building grammars.
 * Tenants with less recent CPU time go first, and those with much rest while answers of others are decoded.
 */
import { LRUCache } from 'lru-cache'
import { invalidRequest } from '../../../../errors.ts'

/** CPU time that one call may spend on its text, in ms. */
export const callBudgetMs = 10_000
/** Time in which the recorded CPU time of a tenant halves, in ms. */
const halfLifeMs = 10_000
/**
 * Recent CPU time, in ms and divided by the weight, above which jobs of a tenant rest while the model decodes
 * answers of others. A tenant that always has jobs gets 5 % of a core, in which 200 KB of text are tokenized per
 * second.
 */
const maxRecentMs = 700
/**
 * Most recent CPU time that delays slow jobs, in ms and divided by the weight. One call can reach it. Then slow jobs
 * rest for up to 40 s.
 */
const maxCountedMs = callBudgetMs
/** The same for all other jobs, which rest for one half-life at most. Each of them is short, or charged in pieces. */
const maxQuickCountedMs = 2 * maxRecentMs
/** Time until jobs that rest are checked again, in ms. */
export const restCheckMs = 50
/** How long the jobs of a tenant count as slow after one of them was slow, in ms. */
const slowMs = 10_000
/** Beyond this number, the tenant that was idle for longest counts as new. */
const maxTenants = 10_000

interface TenantRecord {
  /** Recent CPU time, in ms. */
  cpuMs: number
  /** The part of it that delays jobs which are not slow. */
  quickMs: number
  updatedAt: number
  slowUntil: number
}

/** Recent CPU time of each tenant. */
export class TenantCpu {
  readonly #records = new LRUCache<string, TenantRecord>({ max: maxTenants })
  /** Number of answers that run, wait for a slot or are paused, by tenant. */
  readonly #answers = new Map<string, number>()
  readonly #isDecoding: () => boolean
  readonly #now: () => number

  /**
   * @param isDecoding whether the model takes steps. It does not while all answers are paused
   * @param now clock in milliseconds
   */
  constructor({ isDecoding = (): boolean => true, now = () => performance.now() } = {}) {
    this.#isDecoding = isDecoding
    this.#now = now
  }

  charge(tenant: string, ms: number, weight = 1): void {
    const record = this.#update(tenant)
    record.cpuMs = Math.min(record.cpuMs + ms, maxCountedMs * weight)
    record.quickMs = Math.min(record.quickMs + ms, maxQuickCountedMs * weight)
    this.#records.set(tenant, record)
  }

  recentMs(tenant: string): number {
    return this.#update(tenant).cpuMs
  }

  /** Counts an answer of the tenant until the returned function is called. */
  startAnswer(tenant: string): () => void {
    const countOf = (): number => this.#answers.get(tenant) ?? 0
    this.#answers.set(tenant, countOf() + 1)
    return () => {
      if (countOf() > 1) this.#answers.set(tenant, countOf() - 1)
      else this.#answers.delete(tenant)
    }
  }

  /** Whether the tenant has recently used much CPU time, while the model decodes and others have answers. */
  mustRest(tenant: string, weight: number, isSlow: boolean): boolean {
    const hasOthers = this.#answers.size > (this.#answers.has(tenant) ? 1 : 0)
    if (!hasOthers || !this.#isDecoding()) return false
    const { cpuMs, quickMs } = this.#update(tenant)
    return (isSlow ? cpuMs : quickMs) > maxRecentMs * weight
  }

  markSlow(tenant: string): void {
    this.#records.set(tenant, { ...this.#update(tenant), slowUntil: this.#now() + slowMs })
  }

  isSlow(tenant: string): boolean {
    const slowUntil = this.#records.peek(tenant)?.slowUntil ?? 0
    return slowUntil > 0 && slowUntil > this.#now()
  }

  #update(tenant: string): TenantRecord {
    const now = this.#now()
    const record = this.#records.get(tenant) ?? { cpuMs: 0, quickMs: 0, updatedAt: now, slowUntil: 0 }
    const remaining = 2 ** ((record.updatedAt - now) / halfLifeMs)
    record.cpuMs *= remaining
    record.quickMs *= remaining
    record.updatedAt = now
    return record
  }
}

interface BudgetOwner {
  readonly tenant: string
  /** Part of the CPU time that the tenant gets, relative to other tenants. */
  readonly weight: number
  readonly background: boolean
  readonly signal: AbortSignal
}

/** CPU time of one call. */
export class CpuBudget implements BudgetOwner {
  readonly tenant: string
  readonly weight: number
  readonly background: boolean
  readonly signal: AbortSignal
  readonly #tenants: TenantCpu
  #usedMs = 0

  constructor(tenants: TenantCpu, { tenant, weight, background, signal }: BudgetOwner) {
    this.#tenants = tenants
    this.tenant = tenant
    this.weight = weight
    this.background = background
    this.signal = signal
  }

  get remainingMs(): number {
    return callBudgetMs - this.#usedMs
  }

  /** Recent CPU time of the tenant, divided by its weight. */
  get tenantMs(): number {
    return this.#tenants.recentMs(this.tenant) / this.weight
  }

  /** Whether the next job is expected to be slow, since a recent job of the tenant was. */
  get isSlow(): boolean {
    return this.#tenants.isSlow(this.tenant)
  }

  /** Counts an answer of the tenant until the returned function is called. */
  startAnswer(): () => void {
    return this.#tenants.startAnswer(this.tenant)
  }

  markSlow(): void {
    this.#tenants.markSlow(this.tenant)
  }

  charge(ms: number): void {
    this.#usedMs += ms
    this.chargeTenant(ms)
  }

  /** Runs the work, and charges its time to the tenant. */
  measureForTenant<T>(work: () => T): T {
    const startedAt = performance.now()
    try {
      return work()
    } finally {
      this.chargeTenant(performance.now() - startedAt)
    }
  }

  /** Charges the tenant, but not the call. */
  chargeTenant(ms: number): void {
    this.#tenants.charge(this.tenant, ms, this.weight)
  }

  /**
   * Whether the tenant has recently used much CPU time, while the model decodes and others have answers.
   * @param isSlow whether the next job is slow. Such a job rests for longer
   */
  mustRest(isSlow = false): boolean {
    return this.#tenants.mustRest(this.tenant, this.weight, isSlow)
  }

  /** Throws an `LlmError` `invalid_request` if the call has used up its budget. */
  throwIfSpent(): void {
    if (this.remainingMs <= 0) throw budgetExceeded()
  }

  /** Another budget for the same tenant, for one of several texts of a call. */
  fork(signal: AbortSignal): CpuBudget {
    const { tenant, weight, background } = this
    return new CpuBudget(this.#tenants, { tenant, weight, background, signal })
  }
}

/** Returns the entries that need not rest. */
export function listAwake<Entry extends { readonly budget: CpuBudget }>(
  waiting: readonly Entry[],
  isSlow: (entry: Entry) => boolean = () => false,
): readonly Entry[] {
  const [quick, slow] = [new Map<string, boolean>(), new Map<string, boolean>()]
  return waiting.filter((entry) => {
    const { budget } = entry
    const isSlowEntry = isSlow(entry)
    const resting = isSlowEntry ? slow : quick
    const mustRest = resting.get(budget.tenant) ?? budget.mustRest(isSlowEntry)
    resting.set(budget.tenant, mustRest)
    return !mustRest
  })
}

/** Returns the first entry of the tenant with the least CPU time. Foreground calls go before background calls. */
export function selectNext<Entry extends { readonly budget: CpuBudget }>(
  waiting: readonly Entry[],
): Entry | undefined {
  const foreground = waiting.filter(({ budget }) => !budget.background)
  const seen = new Set<string>()
  let next: Entry | undefined
  let leastMs = Number.POSITIVE_INFINITY
  for (const entry of foreground.length > 0 ? foreground : waiting) {
    const { tenant } = entry.budget
    if (seen.has(tenant)) continue
    seen.add(tenant)
    const { tenantMs } = entry.budget
    if (tenantMs < leastMs) [next, leastMs] = [entry, tenantMs]
  }
  return next
}

const budgetExceeded = () =>
  invalidRequest(
    `The text takes too long to render and tokenize. The limit is ${callBudgetMs / 1_000} s of CPU time for each call. Send less text, or text with spaces.`,
    { param: 'messages' },
  )
