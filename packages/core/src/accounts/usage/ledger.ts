/**
 * Records the usage and the cost of each call, and enforces spending limits. For a caller with a spending
 * limit, it reserves the worst-case cost before the call starts. The reservation is a lease, which the
 * process that runs the call renews. Leases of a dead process expire after a minute.
 */

import { toStorableId } from '../../limits/demand.ts'
import type { Database } from '../../storage/database.ts'
import { migrate } from '../../storage/migrations.ts'
import type { Caller } from '../auth/caller.ts'
import { toNanoUsdLimit } from '../spending-limit.ts'
import { writeCall } from './call-rows.ts'
import type { CallUsage } from './call-usage.ts'
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
  /** Maps all names of one model to the same string. @default the name itself */
  readonly keyOf?: ((model: string) => string) | undefined
  readonly warnings?: SpendingWarningOptions | undefined
  /** How long rows of calls are kept, in milliseconds. @default forever */
  readonly retentionMs?: number | undefined
  /** Current names of API keys, by id. @default the name that each key had at its last call */
  readonly namesOf?: (() => Promise<ReadonlyMap<string, string>>) | undefined
  /**
   * Called when work in the background fails. Failed writes are repeated later, unless their values are
   * invalid.
   */
  readonly onError?: ((cause: unknown) => void) | undefined
  /** For tests: whole milliseconds since 1970. @default the clock of the database */
  readonly now?: (() => number) | undefined
}

/** A call, as the ledger records it. */
export interface LedgerCall {
  /** Primary key of the call's row. */
  readonly id: string
  readonly caller: Caller
  readonly model: string
  readonly dialect?: string | undefined
  /** Whether the call costs half the price. */
  readonly isBatch?: boolean | undefined
}

export interface WorstCase {
  readonly inputTokens: number
  /** Maximum output tokens. @default as many as the credit pays for */
  readonly outputTokens?: number | undefined
  /** Number of answers. Without a maximum, the credit must cover a token for each. @default 1 */
  readonly answers?: number | undefined
  /** Upper bound of the output tokens, from the context and the limit of the caller. @default unknown */
  readonly outputRoom?: number | undefined
}

export interface CallOutcome {
  readonly usage: CallUsage
  readonly status: CallStatus
  readonly durationMs: number
}

export type CallStatus = 'ended' | 'failed' | 'aborted'

export interface CreditReservation {
  /** Maximum output tokens of the call. */
  readonly maxOutputTokens: number
  /** Charges the usage of the call. Does nothing when called again. Never rejects. */
  settle(outcome: CallOutcome): Promise<void>
}

export async function openLedger(database: Database, options: LedgerOptions = {}): Promise<Ledger> {
  await migrate(database, 'usage', usageTables)
  return new Ledger(database, options)
}

/** A settled call whose row is not written yet. */
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
  /** Reservations of running calls, and of settled calls whose row is not written yet. */
  readonly #leases: CreditLeases
  /** Settled calls whose row is not written yet, by id. */
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

  /** Whether the caller has a spending limit, and the model is not free. */
  isLimited({ caller, model }: Pick<LedgerCall, 'caller' | 'model'>): boolean {
    const rates = this.#ratesOf(model)
    return caller.spendingLimit !== undefined && !(rates && isFree(rates))
  }

  /**
   * Throws an `LlmError`: `quota` if the caller has no credit left, `rate_limit` if running calls have
   * reserved the rest.
   */
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

  /** Opens a call that is charged at its end, without a reservation. */
  openPostpaid(call: LedgerCall): CreditReservation {
    return this.#createReservation(call, Number.POSITIVE_INFINITY, undefined)
  }

  /**
   * Reserves the worst-case cost of a call. Throws an `LlmError` `quota` if the credit does not cover it.
   * Throws `rate_limit` if the credit would cover it without the reservations of running calls. Throws
   * `permission` for a model without a price.
   */
  async reserve(
    call: LedgerCall,
    { inputTokens, outputTokens, answers = 1, outputRoom = Number.POSITIVE_INFINITY }: WorstCase,
  ): Promise<CreditReservation> {
    const { id, caller, model, isBatch } = call
    if (!caller.spendingLimit || !this.isLimited(call)) return this.openPostpaid(call)
    const limit = toNanoUsdLimit(caller.spendingLimit)
    const rates = this.#ratesOf(model)
    if (!rates) throw modelUnpriced(model)

    const least = Math.min(outputTokens ?? answers, outputRoom)
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
      const maxOutputTokens = Math.min(outputTokens ?? affordable, outputRoom)
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

  /** Returns sums of the usage in a range of days, per key, tenant, model or day. */
  async report(query: UsageQuery): Promise<readonly UsageRow[]> {
    const rows = await queryUsage(this.#database, query)
    if (query.by !== 'key' || !this.#namesOf) return rows
    const names = await this.#namesOf()
    return rows.map((row) => ({
      ...row,
      ...(names.has(row.group) && { name: names.get(row.group) as string }),
    }))
  }

  /** Returns single calls, the newest first. */
  calls(query: CallsQuery = {}): Promise<readonly CallRow[]> {
    return queryCalls(this.#database, query)
  }

  /** Renews the leases of running calls and repeats failed writes. Called by a timer. */
  async renew(): Promise<void> {
    for (const entry of this.#pending.values()) await this.#flush(entry)
    await this.#leases.renew()
  }

  /** Writes the settled calls. A write that fails from now on is not repeated. */
  async close(): Promise<void> {
    this.#isClosed = true
    // In parallel, so that the timeouts of an unresponsive database do not add up.
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
      // Keeps the call for another attempt, except if its values are invalid: they would fail each time.
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
      // Not later than now: the clock may have been set back during the call.
      const at = Math.min(reserved?.at ?? now - durationMs, now)
      const row = {
        ...call,
        dialect: call.dialect,
        at,
        tokens,
        undeliveredTokens: outcome.usage.undeliveredTokens,
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
