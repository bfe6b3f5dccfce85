/**
 * What calls have used and cost, one row each, and what callers may still spend. Before a call its worst case is reserved, as a lease
 * that is renewed while it runs: those of a process that died are counted no more after a minute.
 */

import type { TokenUsage } from '../../engine/events.ts'
import { toStorableId } from '../../limits/demand.ts'
import type { Database } from '../../storage/database.ts'
import { migrate } from '../../storage/migrations.ts'
import type { Caller } from '../auth/caller.ts'
import { toNanoUsdLimit } from '../spending-limit.ts'
import { writeCall } from './call-rows.ts'
import { lockCredit, prepareRefusal } from './credit.ts'
import { CreditLeases, type ReservedCredit } from './credit-leases.ts'
import {
  affordableOutput,
  computeCost,
  countByKind,
  isFree,
  type Prices,
  type Rates,
  toRates,
  toWorstCaseTokens,
} from './pricing.ts'
import {
  type CallRow,
  type CallsQuery,
  queryCalls,
  queryUsage,
  type UsageQuery,
  type UsageRow,
} from './report.ts'
import { Retention } from './retention.ts'
import { addSpending, lockAccount, noteExhausted, spentIn } from './spending.ts'
import { modelUnpriced } from './spending-errors.ts'
import { usageTables } from './tables.ts'
import { type SpendingWarningOptions, SpendingWarnings, toWarning } from './warnings.ts'

export interface LedgerOptions {
  readonly prices?: Prices | undefined
  /** Two names of one model have one key. @default the name itself */
  readonly keyOf?: ((model: string) => string) | undefined
  readonly warnings?: SpendingWarningOptions | undefined
  /** So long the rows of single calls are kept. @default for ever */
  readonly retentionMs?: number | undefined
  /** How keys are called now, by id. @default as they were at their last call */
  readonly namesOf?: (() => Promise<ReadonlyMap<string, string>>) | undefined
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

export interface WorstCase {
  readonly inputTokens: number
  /** Absent: as many as can be paid for. */
  readonly outputTokens?: number | undefined
  /** There cannot be more than so many, whoever pays. @default nobody knows */
  readonly contextRoom?: number | undefined
}

export interface CallOutcome {
  readonly usage: TokenUsage
  readonly status: CallStatus
  readonly durationMs: number
}

export type CallStatus = 'ended' | 'failed' | 'aborted'

export interface CreditReservation {
  /** The answer may not be longer. */
  readonly maxOutputTokens: number
  /** Charges what was used. Once: what is called later does nothing. Never rejects. */
  settle(outcome: CallOutcome): Promise<void>
}

export async function openLedger(database: Database, options: LedgerOptions = {}): Promise<Ledger> {
  await migrate(database, 'usage', usageTables)
  return new Ledger(database, options)
}

/** What is still to be written. */
interface PendingEntry extends LedgerCall {
  readonly reserved: ReservedCredit | undefined
  readonly outcome: CallOutcome
}

export class Ledger {
  readonly #database: Database
  readonly #clock: () => string
  readonly #keyOf: (model: string) => string
  readonly #rates: ReadonlyMap<string, Rates>
  readonly #warnings: SpendingWarnings
  readonly #onError: (cause: unknown) => void
  readonly #retention: Retention
  readonly #namesOf: LedgerOptions['namesOf']
  /** Of calls that run here, and of those that are not written yet. */
  readonly #leases: CreditLeases
  /** Over, and not written yet. */
  readonly #pending = new Map<string, PendingEntry>()
  #isClosed = false

  constructor(database: Database, options: LedgerOptions) {
    const { prices = {}, keyOf = (model) => model, warnings, onError = () => {}, now } = options
    const { retentionMs = Number.POSITIVE_INFINITY, namesOf } = options
    this.#database = database
    this.#clock = now ? () => String(now()) : () => database.clock
    this.#keyOf = keyOf
    this.#rates = new Map(
      Object.entries(prices).map(([model, price]) => [model === '*' ? model : keyOf(model), toRates(price)]),
    )
    this.#warnings = new SpendingWarnings(warnings)
    this.#onError = onError
    this.#leases = new CreditLeases(database, this.#clock, () => this.renew().catch(onError))
    this.#retention = new Retention(database, retentionMs, onError)
    this.#namesOf = namesOf
  }

  /** Whether a call has to be paid for in advance. */
  isLimited({ caller, model }: Pick<LedgerCall, 'caller' | 'model'>): boolean {
    const rates = this.#ratesOf(model)
    return caller.spendingLimit !== undefined && !(rates && isFree(rates))
  }

  /** Throws `quota` where nothing is left to spend, `rate_limit` where calls that run may need all of it. */
  async expectCredit({ caller }: Pick<LedgerCall, 'caller'>): Promise<void> {
    if (!caller.spendingLimit) return
    const limit = toNanoUsdLimit(caller.spendingLimit)
    const refusal = await this.#database.transaction(async (queries) => {
      const credit = await lockCredit(queries, caller, limit, {
        clock: this.#clock(),
        reserved: this.#leases,
      })
      if (credit.remaining > 0n) return undefined
      return prepareRefusal(
        queries,
        caller,
        limit,
        { ...credit, isEnough: credit.unspent > 0n },
        this.#warnings,
      )
    })
    if (refusal) throw refusal()
  }

  /** A call that is paid for when it is over, whatever it costs. */
  openPostpaid(call: LedgerCall): CreditReservation {
    return this.#createReservation(call, Number.POSITIVE_INFINITY, undefined)
  }

  /**
   * Throws `quota` where the caller's spending limit does not pay for the worst case, `rate_limit` where it would without calls that
   * run, and `permission` where nobody knows what the model costs.
   */
  async reserve(
    call: LedgerCall,
    { inputTokens, outputTokens, contextRoom = Number.POSITIVE_INFINITY }: WorstCase,
  ): Promise<CreditReservation> {
    const { id, caller, model, isBatch } = call
    if (!caller.spendingLimit || !this.isLimited(call)) return this.openPostpaid(call)
    const limit = toNanoUsdLimit(caller.spendingLimit)
    const rates = this.#ratesOf(model)
    if (!rates) throw modelUnpriced(model)

    const least = Math.min(outputTokens ?? 1, contextRoom)
    const affordableFor = (credit: bigint): number | undefined => {
      const affordable = affordableOutput(credit, inputTokens, rates, isBatch)
      return affordable === undefined || affordable < least ? undefined : affordable
    }
    const reservation = await this.#database.transaction(async (queries) => {
      const credit = await lockCredit(queries, caller, limit, {
        clock: this.#clock(),
        reserved: this.#leases,
      })
      const affordable = affordableFor(credit.remaining)
      if (affordable === undefined) {
        const isEnough = affordableFor(credit.unspent) !== undefined
        return prepareRefusal(queries, caller, limit, { ...credit, isEnough }, this.#warnings)
      }
      const maxOutputTokens = Math.min(outputTokens ?? affordable, contextRoom)
      const charged = Number.isFinite(maxOutputTokens) ? maxOutputTokens : 0
      const nanoUsd = computeCost(toWorstCaseTokens(inputTokens, charged, rates), rates, isBatch)
      const reserved = { id, caller: toStorableId(caller.id), at: credit.now, nanoUsd }
      await this.#leases.add(queries, reserved)
      return { maxOutputTokens, reserved }
    })
    if (typeof reservation === 'function') throw reservation()
    this.#leases.track(id, reservation.reserved)
    return this.#createReservation(call, reservation.maxOutputTokens, reservation.reserved)
  }

  /** What was used in some days, by key, model or day. */
  async report(query: UsageQuery): Promise<readonly UsageRow[]> {
    const rows = await queryUsage(this.#database, query)
    if (query.by !== 'key' || !this.#namesOf) return rows
    const names = await this.#namesOf()
    return rows.map((row) => ({
      ...row,
      ...(names.has(row.group) && { name: names.get(row.group) as string }),
    }))
  }

  /** Single calls, the last ones first. */
  calls(query: CallsQuery = {}): Promise<readonly CallRow[]> {
    return queryCalls(this.#database, query)
  }

  /** Says that its calls still run, and writes what could not be written; by itself it does so often enough. */
  async renew(): Promise<void> {
    for (const entry of this.#pending.values()) await this.#flush(entry)
    await this.#leases.renew()
  }

  /** Writes what is still to be written, if the database is there. What is settled later is tried once. */
  async close(): Promise<void> {
    this.#isClosed = true
    // At once: a database that does not answer is waited for, and not once for each.
    await Promise.all([...this.#pending.values()].map((entry) => this.#flush(entry)))
    this.#leases.close()
    await this.#retention.close()
  }

  #ratesOf(model: string): Rates | undefined {
    return this.#rates.get(this.#keyOf(model)) ?? this.#rates.get('*')
  }

  #createReservation(
    call: LedgerCall,
    maxOutputTokens: number,
    reserved: ReservedCredit | undefined,
  ): CreditReservation {
    let isOpen = true
    return {
      maxOutputTokens,
      settle: async (outcome) => {
        if (!isOpen) return
        isOpen = false
        await this.#flush({ ...call, reserved, outcome })
      },
    }
  }

  async #flush(entry: PendingEntry): Promise<void> {
    const { id, reserved } = entry
    this.#pending.set(id, entry)
    try {
      await this.#leases.untrack(id)
      await this.#write(entry)
      this.#pending.delete(id)
    } catch (cause) {
      // A database that is away for a moment is asked again; what cannot be reckoned is wrong for ever.
      if (this.#isClosed || cause instanceof TypeError || cause instanceof RangeError)
        this.#pending.delete(id)
      else this.#leases.track(id, reserved)
      this.#onError(cause)
    }
  }

  async #write({ reserved, outcome, ...call }: PendingEntry): Promise<void> {
    const { id, caller, model, isBatch } = call
    const limit = caller.spendingLimit && toNanoUsdLimit(caller.spendingLimit)
    const tokens = countByKind(outcome.usage)
    const rates = this.#ratesOf(model)
    const nanoUsd = rates ? computeCost(tokens, rates, isBatch) : 0
    const durationMs = Math.round(outcome.durationMs)
    const { status } = outcome
    const written = await this.#database.transaction(async (queries) => {
      const { now } = await lockAccount(queries, caller, this.#clock())
      if (reserved) await this.#leases.remove(queries, id)
      // A clock that has gone back: what was begun later is of now.
      const at = Math.min(reserved?.at ?? now - durationMs, now)
      const row = {
        ...call,
        dialect: call.dialect,
        at,
        tokens,
        nanoUsd,
        isPriced: !!rates,
        status,
        durationMs,
      }
      if (!(await writeCall(queries, row))) return undefined
      const spending = await addSpending(queries, caller, at, nanoUsd)
      const spent = limit && nanoUsd > 0 ? spentIn(spending, limit.period, at) : undefined
      if (!limit || spent === undefined) return { at }
      const isSpent = spent >= BigInt(limit.nanoUsd)
      return {
        at,
        warning: toWarning(caller, limit, Number(spent)),
        isExhausted: isSpent && (await noteExhausted(queries, caller, limit, at)),
      }
    })
    if (!written) return
    const { at, warning, isExhausted } = written
    this.#retention.onWritten(at)
    if (!warning) return
    this.#warnings.onSpent(warning.spentNanoUsd - nanoUsd, warning)
    if (isExhausted) this.#warnings.onExhausted(warning)
  }
}
