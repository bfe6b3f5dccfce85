/**
 * What calls have used and cost, one row each, and what callers may still spend. Before a call its worst case is reserved, as a lease
 * that is renewed while it runs: those of a process that died are counted no more after a minute.
 */
import type { Caller, SpendLimit } from '../caller.ts'
import type { TokenUsage } from '../engine/events.ts'
import { LlmError } from '../errors.ts'
import { storable } from '../limits/demand.ts'
import type { Database, Queries } from '../storage/database.ts'
import { migrate } from '../storage/migrations.ts'
import { dayOf, monthOf, nextStart, startOf } from './periods.ts'
import {
  affordableOutput,
  byKind,
  costOf,
  isFree,
  mostOf,
  type Prices,
  type Rates,
  toRates,
} from './pricing.ts'
import { type CallRow, type CallsQuery, calls, report, type UsageQuery, type UsageRow } from './report.ts'
import { usageTables } from './tables.ts'
import { type SpendWarningOptions, SpendWarnings } from './warnings.ts'

export interface LedgerOptions {
  readonly prices?: Prices | undefined
  /** Two names of one model have one key. @default the name itself */
  readonly keyOf?: ((model: string) => string) | undefined
  readonly warnings?: SpendWarningOptions | undefined
  /** Hears of a database that is away. What could not be written is written later. */
  readonly onError?: ((cause: unknown) => void) | undefined
  /** For tests: whole milliseconds since 1970. @default the clock of the database */
  readonly now?: (() => number) | undefined
}

/** What a call is, for the ledger. */
export interface LedgerCall {
  /** There is one row for each. */
  readonly id: string
  readonly caller: Caller
  readonly model: string
  readonly dialect?: string | undefined
  /** One that can wait: at half the price. */
  readonly isBatch?: boolean | undefined
}

export interface Most {
  readonly inputTokens: number
  /** Absent: as many as can be paid for. */
  readonly outputTokens?: number | undefined
  /** There cannot be more than so many, whoever pays. @default nobody knows */
  readonly room?: number | undefined
}

export interface Outcome {
  readonly usage: TokenUsage
  readonly status: CallStatus
  readonly durationMs: number
}

export type CallStatus = 'ended' | 'failed' | 'aborted'

/** One of both is to be called, once; what is called later does nothing. */
export interface Funds {
  /** The answer may not be longer. */
  readonly maxOutputTokens: number
  /** Charges what was used. Never rejects. */
  settle(outcome: Outcome): Promise<void>
  /** As if nothing had been asked. Never rejects. */
  release(): Promise<void>
}

const leaseMs = 60_000
const renewEveryMs = 20_000

export async function openLedger(database: Database, options: LedgerOptions = {}): Promise<Ledger> {
  await migrate(database, 'usage', usageTables)
  return new Ledger(database, options)
}

/** What is still to be written. */
interface Entry extends LedgerCall {
  /** When its worst case was reserved. */
  readonly reservedAt?: number | undefined
  /** Absent: it was released. */
  readonly outcome: Outcome | undefined
}

export class Ledger {
  readonly #database: Database
  readonly #clock: () => string
  readonly #keyOf: (model: string) => string
  readonly #rates: ReadonlyMap<string, Rates>
  readonly #warnings: SpendWarnings
  readonly #onError: (cause: unknown) => void
  /** Leases of calls that run here. */
  readonly #open = new Set<string>()
  /** Over, and not written yet. */
  readonly #entries = new Map<string, Entry>()
  #timer: NodeJS.Timeout | undefined

  constructor(database: Database, options: LedgerOptions) {
    const { prices = {}, keyOf = (model) => model, warnings, onError = () => {}, now } = options
    this.#database = database
    this.#clock = now ? () => String(now()) : () => database.clock
    this.#keyOf = keyOf
    this.#rates = new Map(
      Object.entries(prices).map(([model, price]) => [model === '*' ? model : keyOf(model), toRates(price)]),
    )
    this.#warnings = new SpendWarnings(warnings)
    this.#onError = onError
  }

  /** Whether a call has to be paid for in advance. */
  isLimited({ caller, model }: Pick<LedgerCall, 'caller' | 'model'>): boolean {
    const rates = this.#ratesOf(model)
    return caller.spendLimit !== undefined && rates !== undefined && !isFree(rates)
  }

  /** Throws `quota` where nothing is left to spend. */
  async expectCredit({ caller }: Pick<LedgerCall, 'caller'>): Promise<void> {
    if (!caller.spendLimit) return
    const refusal = await this.#database.transaction(async (queries) => {
      const account = await this.#lock(queries, caller)
      return creditOf(account, caller.spendLimit) > 0n ? undefined : this.#refuse(queries, caller, account)
    })
    if (refusal) throw refusal()
  }

  /** Throws `quota` where the caller's spending limit does not pay for the worst case. */
  async reserve(
    call: LedgerCall,
    { inputTokens, outputTokens, room = Number.POSITIVE_INFINITY }: Most,
  ): Promise<Funds> {
    const { id, caller, model, isBatch } = call
    const rates = this.#ratesOf(model)
    if (!caller.spendLimit || !rates || isFree(rates)) return this.#funds(call, Number.POSITIVE_INFINITY)

    const reserved = await this.#database.transaction(async (queries) => {
      const account = await this.#lock(queries, caller)
      const affordable = affordableOutput(creditOf(account, caller.spendLimit), inputTokens, rates, isBatch)
      const least = Math.min(outputTokens ?? 1, room)
      if (affordable === undefined || affordable < least) return this.#refuse(queries, caller, account)
      const maxOutputTokens = Math.min(outputTokens ?? affordable, room)
      const charged = Number.isFinite(maxOutputTokens) ? maxOutputTokens : 0
      await queries.query(
        'INSERT INTO modelmount_funds (id, caller, at, nano_usd, expires_at) VALUES (?, ?, ?, ?, ?)',
        [
          id,
          storable(caller.id),
          account.now,
          costOf(mostOf(inputTokens, charged, rates), rates, isBatch),
          account.now + leaseMs,
        ],
      )
      return { maxOutputTokens, at: account.now }
    })
    if (typeof reserved === 'function') throw reserved()
    this.#open.add(id)
    this.#keepOn()
    return this.#funds(call, reserved.maxOutputTokens, reserved.at)
  }

  /** What was used in some days, by key, model or day. */
  report(query: UsageQuery): Promise<readonly UsageRow[]> {
    return report(this.#database, query)
  }

  /** Single calls, the last ones first. */
  calls(query: CallsQuery = {}): Promise<readonly CallRow[]> {
    return calls(this.#database, query)
  }

  /** Says that its calls still run, and writes what could not be written; by itself it does so often enough. */
  async renew(): Promise<void> {
    for (const entry of this.#entries.values()) await this.#flush(entry)
    const ids = [...this.#open]
    for (let from = 0; from < ids.length; from += batchSize) {
      const batch = ids.slice(from, from + batchSize)
      await this.#database.query(
        `UPDATE modelmount_funds SET expires_at = ${this.#clock()} + ${leaseMs} WHERE id IN (${batch.map(() => '?').join(', ')})`,
        batch,
      )
    }
    this.#restIfIdle()
  }

  /** Writes what is still to be written, if the database is there. */
  async close(): Promise<void> {
    for (const entry of this.#entries.values()) await this.#flush(entry)
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #ratesOf(model: string): Rates | undefined {
    return this.#rates.get(this.#keyOf(model)) ?? this.#rates.get('*')
  }

  #funds(call: LedgerCall, maxOutputTokens: number, reservedAt?: number): Funds {
    let isOpen = true
    const close = async (outcome: Outcome | undefined): Promise<void> => {
      if (!isOpen) return
      isOpen = false
      if (outcome || reservedAt !== undefined) await this.#flush({ ...call, reservedAt, outcome })
    }
    return { maxOutputTokens, settle: close, release: () => close(undefined) }
  }

  async #flush(entry: Entry): Promise<void> {
    this.#entries.set(entry.id, entry)
    try {
      await this.#write(entry)
      this.#entries.delete(entry.id)
      this.#open.delete(entry.id)
      this.#restIfIdle()
    } catch (cause) {
      this.#keepOn()
      this.#onError(cause)
    }
  }

  async #write({ id, caller, model, dialect, isBatch, reservedAt, outcome }: Entry): Promise<void> {
    if (!outcome) {
      await this.#database.query('DELETE FROM modelmount_funds WHERE id = ?', [id])
      return
    }
    const tokens = byKind(outcome.usage)
    const rates = this.#ratesOf(model)
    const nanoUsd = rates ? costOf(tokens, rates, isBatch) : 0
    const durationMs = Math.round(outcome.durationMs)
    const spent = await this.#database.transaction(async ({ query }) => {
      const at = reservedAt ?? (await this.#now(query)) - durationMs
      const kinds = [tokens.input, tokens.cachedInput, tokens.cacheWrite, tokens.output]
      const written = await query(
        `INSERT INTO modelmount_calls (id, at, caller, key_name, model, dialect,
           input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, nano_usd, priced, status, duration_ms)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (id) DO NOTHING RETURNING id`,
        [
          id,
          at,
          storable(caller.id),
          caller.key?.name ?? null,
          storable(model),
          dialect ?? null,
          ...kinds,
          nanoUsd,
          rates ? 1 : 0,
          outcome.status,
          durationMs,
        ],
      )
      // It was there already: whoever asked did not hear of it.
      if (written.length === 0) return undefined
      const spending = await this.#spend(query, caller, at, nanoUsd)
      await query('DELETE FROM modelmount_funds WHERE id = ?', [id])
      await query(
        `INSERT INTO modelmount_usage_days (day, caller, model, key_name, calls,
           input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, nano_usd, unpriced_calls)
         VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (day, caller, model) DO UPDATE SET key_name = excluded.key_name, ${summed.map((column) => `${column} = modelmount_usage_days.${column} + excluded.${column}`).join(', ')}`,
        [
          dayOf(at),
          storable(caller.id),
          storable(model),
          caller.key?.name ?? null,
          ...kinds,
          nanoUsd,
          rates ? 0 : 1,
        ],
      )
      return { ...spending, now: at }
    })
    const { spendLimit } = caller
    if (!spent || !spendLimit || nanoUsd === 0) return
    const after = Number(spentOf(spent, spendLimit.per))
    this.#warnings.onSpent(after - nanoUsd, toWarning(caller, spendLimit, after))
  }

  async #spend(query: Queries['query'], caller: Caller, at: number, nanoUsd: number): Promise<Spending> {
    const [spending] = await query<Spending>(
      `INSERT INTO modelmount_spending (caller, day, day_spent, month, month_spent, lifetime_spent, exhausted)
       VALUES (?, ?, ?, ?, ?, ?, -1)
       ON CONFLICT (caller) DO UPDATE SET ${['day', 'month'].map(addedTo).join(', ')},
         lifetime_spent = modelmount_spending.lifetime_spent + excluded.lifetime_spent
       RETURNING day, day_spent, month, month_spent, lifetime_spent, exhausted`,
      [storable(caller.id), dayOf(at), nanoUsd, monthOf(at), nanoUsd, nanoUsd],
    )
    return spending as Spending
  }

  /** How the caller stands; nobody else reserves for it or charges it until the transaction ends. */
  async #lock({ query }: Queries, caller: Caller): Promise<Account> {
    const id = storable(caller.id)
    const clock = this.#clock()
    const [row] = await query<Spending & { readonly now: number }>(
      `INSERT INTO modelmount_spending (caller, day, day_spent, month, month_spent, lifetime_spent, exhausted)
       VALUES (?, '', 0, '', 0, 0, -1)
       ON CONFLICT (caller) DO UPDATE SET lifetime_spent = modelmount_spending.lifetime_spent
       RETURNING day, day_spent, month, month_spent, lifetime_spent, exhausted, ${clock} AS now`,
      [id],
    )
    const spending = row as Spending & { readonly now: number }
    await query('DELETE FROM modelmount_funds WHERE caller = ? AND expires_at <= ?', [id, spending.now])
    const [leased] = await query<{ reserved: number | bigint | null }>(
      'SELECT sum(nano_usd) AS reserved FROM modelmount_funds WHERE caller = ? AND at >= ?',
      [id, startOf(caller.spendLimit?.per ?? 'lifetime', spending.now)],
    )
    return { ...spending, reserved: leased?.reserved ?? 0 }
  }

  /** Rolls nothing back: the first refusal of a period is noted. */
  async #refuse({ query }: Queries, caller: Caller, account: Account): Promise<() => LlmError> {
    const { spendLimit } = caller
    if (!spendLimit) return () => quota(caller, account.now)
    const { nanoUsd, per } = spendLimit
    const spent = spentOf(account, per)
    const start = startOf(per, account.now)
    const noted = await query(
      'UPDATE modelmount_spending SET exhausted = ? WHERE caller = ? AND exhausted < ? RETURNING caller',
      [start, storable(caller.id), start],
    )
    // What is reserved may come back: only what is spent is gone.
    const isNew = noted.length > 0 && spent < BigInt(nanoUsd)
    return () => {
      if (isNew) this.#warnings.onTooLittle(toWarning(caller, spendLimit, Number(spent)))
      return quota(caller, account.now)
    }
  }

  async #now(query: Queries['query']): Promise<number> {
    const [row] = await query<{ now: number }>(`SELECT ${this.#clock()} AS now`)
    return (row as { now: number }).now
  }

  #keepOn(): void {
    // A database that is away for a moment is asked again.
    this.#timer ??= setInterval(() => void this.renew().catch(this.#onError), renewEveryMs).unref()
  }

  #restIfIdle(): void {
    if (this.#open.size + this.#entries.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

const batchSize = 500

/** Nano-dollars may be more than numbers are exact for. */
interface Spending {
  readonly day: string
  readonly day_spent: number | bigint
  readonly month: string
  readonly month_spent: number | bigint
  readonly lifetime_spent: number | bigint
}

interface Account extends Spending {
  readonly now: number
  /** By calls that run, in the period of the limit. */
  readonly reserved: number | bigint
}

const summed = [
  'calls',
  'input_tokens',
  'cached_input_tokens',
  'cache_write_tokens',
  'output_tokens',
  'nano_usd',
  'unpriced_calls',
]

/** What is charged late, for a period that is over, is no longer of interest. */
const addedTo = (period: string): string =>
  `${period}_spent = CASE
     WHEN excluded.${period} > modelmount_spending.${period} THEN excluded.${period}_spent
     WHEN excluded.${period} = modelmount_spending.${period} THEN modelmount_spending.${period}_spent + excluded.${period}_spent
     ELSE modelmount_spending.${period}_spent END,
   ${period} = CASE WHEN excluded.${period} > modelmount_spending.${period} THEN excluded.${period} ELSE modelmount_spending.${period} END`

function spentOf(spending: Spending & { readonly now: number }, per: SpendLimit['per']): bigint {
  if (per === 'lifetime') return BigInt(spending.lifetime_spent)
  if (per === 'day') return spending.day >= dayOf(spending.now) ? BigInt(spending.day_spent) : 0n
  return spending.month >= monthOf(spending.now) ? BigInt(spending.month_spent) : 0n
}

const creditOf = (account: Account, limit: SpendLimit | undefined): bigint =>
  limit ? BigInt(limit.nanoUsd) - spentOf(account, limit.per) - BigInt(account.reserved) : 0n

const toWarning = (caller: Caller, { nanoUsd, per }: SpendLimit, spentNanoUsd: number) => ({
  caller: caller.id,
  keyName: caller.key?.name,
  spentNanoUsd,
  limitNanoUsd: nanoUsd,
  per,
})

function quota(caller: Caller, now: number): LlmError {
  const { nanoUsd = 0, per = 'lifetime' } = caller.spendLimit ?? {}
  const resumesAt = nextStart(per, now)
  const who = caller.key ? `The key "${caller.key.name}"` : 'This caller'
  const limit = `its spending limit of $${nanoUsd / 1e9}${per === 'lifetime' ? '' : ` per ${per}`}`
  const rest = resumesAt ? ` Access resumes at ${resumesAt.toISOString().replace('.000', '')}.` : ''
  return new LlmError('quota', `${who} has too little left of ${limit} for this request.${rest}`, {
    ...(caller.key && { keyName: caller.key.name }),
    per,
    ...(resumesAt && { resumesAt }),
  })
}
