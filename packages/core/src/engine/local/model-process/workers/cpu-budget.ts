/**
 * CPU time that calls spend on text before and beside decoding: rendering, tokenizing, building grammars.
 * Tenants with less recent CPU time go first.
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
/** Time until jobs that rest are checked again, in ms. */
export const restCheckMs = 50
/** How long the jobs of a tenant count as slow after one of them was slow, in ms. */
const slowMs = 10_000
/** Beyond this number, the tenant that was idle for longest counts as new. */
const maxTenants = 10_000

interface TenantRecord {
  cpuMs: number
  updatedAt: number
  slowUntil: number
}

/** Recent CPU time of each tenant. */
export class TenantCpu {
  readonly #records = new LRUCache<string, TenantRecord>({ max: maxTenants })
  /** Number of answers that are decoded or wait for a slot, by tenant. */
  readonly #answers = new Map<string, number>()
  readonly #now: () => number

  /** @param now clock in milliseconds */
  constructor(now = () => performance.now()) {
    this.#now = now
  }

  charge(tenant: string, ms: number): void {
    const record = this.#update(tenant)
    record.cpuMs += ms
    this.#records.set(tenant, record)
  }

  recentMs(tenant: string): number {
    return this.#update(tenant).cpuMs
  }

  /** Counts an answer of the tenant that is decoded, until the returned function is called. */
  startAnswer(tenant: string): () => void {
    const countOf = (): number => this.#answers.get(tenant) ?? 0
    this.#answers.set(tenant, countOf() + 1)
    return () => {
      if (countOf() > 1) this.#answers.set(tenant, countOf() - 1)
      else this.#answers.delete(tenant)
    }
  }

  /** Whether answers of other tenants are decoded. */
  servesOthers(tenant: string): boolean {
    return this.#answers.size > (this.#answers.has(tenant) ? 1 : 0)
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
    const record = this.#records.get(tenant) ?? { cpuMs: 0, updatedAt: now, slowUntil: 0 }
    record.cpuMs *= 2 ** ((record.updatedAt - now) / halfLifeMs)
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

  /** Counts an answer of the tenant that is decoded, until the returned function is called. */
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

  /** Charges the tenant, but not the call. */
  chargeTenant(ms: number): void {
    this.#tenants.charge(this.tenant, ms)
  }

  /** Whether the tenant has recently used much CPU time, and the model decodes answers of others. */
  get mustRest(): boolean {
    return this.#tenants.servesOthers(this.tenant) && this.tenantMs > maxRecentMs
  }

  /** Throws an `LlmError` `invalid_request` if the call has used up its budget. */
  throwIfSpent(): void {
    if (this.remainingMs < 0) throw budgetExceeded()
  }

  /** Another budget for the same tenant, for one of several texts of a call. */
  fork(signal: AbortSignal): CpuBudget {
    const { tenant, weight, background } = this
    return new CpuBudget(this.#tenants, { tenant, weight, background, signal })
  }
}

/** Returns the entries of the tenants that need not rest. */
export function listAwake<Entry extends { readonly budget: CpuBudget }>(
  waiting: readonly Entry[],
): readonly Entry[] {
  const resting = new Map<string, boolean>()
  return waiting.filter(({ budget }) => {
    const mustRest = resting.get(budget.tenant) ?? budget.mustRest
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
