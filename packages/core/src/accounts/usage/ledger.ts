/**
 * Records the usage and the cost of each call, and enforces spending limits. For a caller with a spending
 * limit, it reserves the worst-case cost before the call starts. The reservation is a lease, which the
 * process that runs the call renews, with a note of what the reader has got. Leases of a dead process expire after
 * 9 s, and another process then charges their notes.
 */

import { LlmError } from '../../errors.ts'
import { toStorableId } from '../../limits/demand.ts'
import type { Database, Queries } from '../../storage/database.ts'
import { migrate } from '../../storage/migrations.ts'
import { auditTables } from '../audit/tables.ts'
import type { Caller } from '../auth/caller.ts'
import { PriceList } from '../prices/price-list.ts'
import {
  affordableOutput,
  computeCost,
  countByKind,
  isFree,
  type Prices,
  type Rates,
  toWorstCaseTokens,
} from '../prices/pricing.ts'
import { type NanoUsdLimit, toNanoUsdLimit } from '../spending-limit.ts'
import { trafficTables } from '../traffic/tables.ts'
import type { CallUsage } from './call-usage.ts'
import { type Credit, lockCredit, prepareRefusal } from './credit.ts'
import { CreditLeases } from './credit-leases.ts'
import { type CallNote, chargeAllKilledCalls, type RecordedCall, recordCall } from './killed-calls.ts'
import {
  type CallRow,
  type CallsQuery,
  queryCalls,
  queryUsage,
  type UsageQuery,
  type UsageRow,
} from './report.ts'
import { Retention } from './retention.ts'
import { type LedgerCall, RunningCharge } from './running-charge.ts'
import { lockAccount, querySpending, type SpendingState } from './spending.ts'
import { modelUnpriced } from './spending-errors.ts'
import { usageTables } from './tables.ts'
import { type SpendingWarningOptions, SpendingWarnings } from './warnings.ts'

export interface LedgerOptions {
  readonly prices?: Prices | undefined
  /** Maps all names of one model to the same string. @default the name itself */
  readonly keyOf?: ((model: string) => string) | undefined
  readonly warnings?: SpendingWarningOptions | undefined
  /** How long rows of calls are kept, in milliseconds. @default forever */
  readonly retentionMs?: number | undefined
  /** Returns current names of API keys, by id. @default the name that each key had at its last call */
  readonly namesOf?: ((ids: readonly string[]) => Promise<ReadonlyMap<string, string>>) | undefined
  /**
   * Called when work in the background fails. Failed writes are repeated later, unless their values are
   * invalid.
   */
  readonly onError?: ((cause: unknown) => void) | undefined
  /** For tests: whole milliseconds since 1970. @default the clock of the database */
  readonly now?: (() => number) | undefined
}

export type { LedgerCall }

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
  /**
   * Called with the usage up to now, before the reader gets an event of the answer. A note of it is charged if
   * this process is killed. The reader must wait for the promise, or it gets more than 64 tokens more than the
   * note contains. The promise never rejects.
   *
   * @param usage may change until the next call of this method
   */
  onTaken(usage: CallUsage): Promise<void> | undefined
  /** Returns the cost of usage in billionths of a dollar. Undefined if these tokens have no price. */
  costOf(usage: CallUsage): number | undefined
  /** Charges the usage of the call. Does nothing when called again. Never rejects. */
  settle(outcome: CallOutcome): Promise<void>
  /**
   * Ends the call like `settle`, but leaves its row to the returned charge. Returns undefined if the call has ended
   * before.
   */
  defer(outcome: CallOutcome): DeferredCharge | undefined
}

/** The charge of a call that has ended. A transaction of other code writes its row, or it is discarded. */
export interface DeferredCharge {
  /**
   * Runs a transaction. It writes the row of the call with the function that it receives, and may be repeated. If it
   * rejects, nothing is charged, and `write` can be called again.
   */
  write<Result>(transact: (writeRow: (queries: Queries) => Promise<void>) => Promise<Result>): Promise<Result>
  /** Releases the reservation without a row. Never rejects. */
  discard(): Promise<void>
}

export async function openLedger(database: Database, options: LedgerOptions = {}): Promise<Ledger> {
  await migrate(database, 'usage', usageTables)
  // The retention also deletes entries of the audit log.
  await migrate(database, 'audit', auditTables)
  await migrate(database, 'traffic', trafficTables)
  return new Ledger(database, options)
}

/** A settled call whose row is not written yet. */
interface PendingEntry extends LedgerCall {
  readonly charge: RunningCharge
  readonly outcome: CallOutcome
  /** Undefined while its row is not being written. */
  writing?: Promise<void> | undefined
}

export class Ledger {
  readonly #database: Database
  readonly #clock: () => string
  /** Calls that open later have the prices that are set then. A running call keeps the price with which it opened. */
  readonly prices: PriceList
  readonly #warnings: SpendingWarnings
  readonly #onError: (cause: unknown) => void
  readonly #retention: Retention
  readonly #namesOf: LedgerOptions['namesOf']
  /** Reservations of running calls, and of settled calls whose row is not written yet. */
  readonly #leases: CreditLeases
  /** Settled calls whose row is not written yet, by id. */
  readonly #pending = new Map<string, PendingEntry>()
  readonly #timer: NodeJS.Timeout
  /** Charges the calls of other processes. Undefined while it does not run. */
  #charging: Promise<void> | undefined
  #isClosed = false

  constructor(database: Database, options: LedgerOptions) {
    const { prices = {}, keyOf = (model) => model, warnings = {}, onError = () => {}, now } = options
    const { retentionMs = Number.POSITIVE_INFINITY, namesOf } = options
    this.#database = database
    this.#clock = now ? () => String(now()) : () => database.clock
    this.prices = new PriceList(prices, keyOf)
    this.#warnings = new SpendingWarnings(warnings, onError)
    this.#onError = onError
    this.#leases = new CreditLeases(database, this.#clock, () => this.renew().catch(onError))
    this.#retention = new Retention(database, { clock: this.#clock, retentionMs, onError })
    this.#namesOf = namesOf
    this.#timer = setInterval(() => void this.chargeKilledCalls(), chargeKilledEveryMs).unref()
  }

  /** Whether the caller has a spending limit, and the model is not free. */
  isLimited({ caller, model }: Pick<LedgerCall, 'caller' | 'model'>): boolean {
    const rates = this.prices.ratesOf(model)
    return caller.spendingLimit !== undefined && !(rates && isFree(rates))
  }

  /** Throws an `LlmError` `permission` if the caller has a spending limit, and the model has no price. */
  expectPrice({ caller, model }: Pick<LedgerCall, 'caller' | 'model'>): void {
    if (caller.spendingLimit && !this.prices.ratesOf(model)) throw modelUnpriced(model)
  }

  /**
   * Throws an `LlmError`: `quota` if the caller has no credit left, `rate_limit` if running calls have
   * reserved the rest.
   */
  async expectCredit({ caller }: Pick<LedgerCall, 'caller'>): Promise<void> {
    if (!caller.spendingLimit) return
    const limit = toNanoUsdLimit(caller.spendingLimit)
    const refusal = await this.#withCredit(caller, limit, async (queries, credit) => {
      if (credit.remaining > 0n) return undefined
      const isEnough = credit.unspent > 0n
      return prepareRefusal(queries, caller, limit, { ...credit, isEnough }, this.#warnings)
    })
    if (refusal) throw refusal()
  }

  /** Opens a call that is charged at its end, without a reservation. */
  openPostpaid(call: LedgerCall): CreditReservation {
    const charge = this.#createCharge(call, this.prices.ratesOf(call.model))
    return this.#createReservation(charge, call, Number.POSITIVE_INFINITY)
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
    const { caller, model, isBatch } = call
    if (!caller.spendingLimit || !this.isLimited(call)) return this.openPostpaid(call)
    const limit = toNanoUsdLimit(caller.spendingLimit)
    const rates = this.prices.ratesOf(model)
    if (!rates) throw modelUnpriced(model)

    const least = Math.min(outputTokens ?? answers, outputRoom)
    const affordableFor = (credit: bigint): number | undefined => {
      const affordable = affordableOutput(credit, inputTokens, rates, isBatch)
      return affordable === undefined || affordable < least ? undefined : affordable
    }
    const reservation = await this.#withCredit(caller, limit, async (queries, credit) => {
      const affordable = affordableFor(credit.remaining)
      if (affordable === undefined) {
        const isEnough = affordableFor(credit.unspent) !== undefined
        return prepareRefusal(queries, caller, limit, { ...credit, isEnough }, this.#warnings)
      }
      const maxOutputTokens = Math.min(outputTokens ?? affordable, outputRoom)
      const charged = Number.isFinite(maxOutputTokens) ? maxOutputTokens : 0
      const nanoUsd = computeCost(toWorstCaseTokens(inputTokens, charged, rates), rates, isBatch)
      const charge = this.#createCharge(call, rates, { at: credit.now, nanoUsd })
      await this.#leases.add(queries, charge)
      return { maxOutputTokens, charge }
    })
    if (typeof reservation === 'function') throw reservation()
    this.#leases.track(reservation.charge)
    return this.#createReservation(reservation.charge, call, reservation.maxOutputTokens)
  }

  /** Returns up to `limit` sums of the usage in a range of days, per key, tenant, model or day. */
  async report(query: UsageQuery): Promise<readonly UsageRow[]> {
    const rows = await queryUsage(this.#database, query)
    if (query.by !== 'key' || !this.#namesOf) return rows
    const names = await this.#namesOf(rows.map(({ group }) => group))
    return rows.map((row) => ({
      ...row,
      ...(names.has(row.group) && { name: names.get(row.group) as string }),
    }))
  }

  /** Returns up to `limit` single calls, the newest first. */
  calls(query: CallsQuery = {}): Promise<readonly CallRow[]> {
    return queryCalls(this.#database, query)
  }

  /** Returns what the callers with a spending limit have spent in its current period, by id. */
  spending(
    callers: readonly Pick<Caller, 'id' | 'spendingLimit'>[],
  ): Promise<ReadonlyMap<string, SpendingState>> {
    return querySpending(this.#database, this.#database.clock, callers)
  }

  /** Renews the leases of running calls and repeats failed writes. Called by a timer. */
  async renew(): Promise<void> {
    await this.#leases.renew()
    for (const entry of this.#pending.values()) await this.#flush(entry)
  }

  /**
   * Charges what processes that were killed have handed out. A timer calls it every 3 s, so that a short command does
   * not take the warnings of these calls from the app that sends them. Never rejects.
   */
  chargeKilledCalls(): Promise<void> {
    this.#charging ??= chargeAllKilledCalls(this.#database, {
      clock: this.#clock(),
      leases: this.#leases,
      onRecorded: (recorded) => this.#onRecorded(recorded),
      onError: this.#onError,
    })
      .catch((cause: unknown) => {
        // While the database is unavailable, each call reports it. This timer would report it every 3 s.
        if (!LlmError.is(cause) || cause.code !== 'unavailable') this.#onError(cause)
      })
      .finally(() => {
        this.#charging = undefined
      })
    return this.#charging
  }

  /** Writes the settled calls. A write that fails from now on is not repeated. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#timer)
    await this.#charging
    // In parallel, so that the timeouts of an unresponsive database do not add up.
    await Promise.all([...this.#pending.values()].map((entry) => this.#flush(entry)))
    this.#leases.close()
    await this.#retention.close()
  }

  /** Runs work in a transaction that has locked the caller's account. */
  async #withCredit<Result>(
    caller: Caller,
    limit: NanoUsdLimit,
    work: (queries: Queries, credit: Credit) => Promise<Result>,
  ): Promise<Result> {
    const options = { clock: this.#clock(), reserved: this.#leases }
    const { result, killed } = await this.#database.transaction(async (queries) => {
      const { killed, ...credit } = await lockCredit(queries, caller, limit, options)
      return { result: await work(queries, credit), killed }
    })
    this.#onRecorded(killed)
    return result
  }

  #createCharge(
    call: LedgerCall,
    rates: Rates | undefined,
    reserved?: { readonly at: number; readonly nanoUsd: number },
  ): RunningCharge {
    return new RunningCharge(call, reserved, {
      leases: this.#leases,
      toNote: (usage, durationMs) => toNote(call, rates, usage, durationMs),
    })
  }

  #createReservation(charge: RunningCharge, call: LedgerCall, maxOutputTokens: number): CreditReservation {
    let isOpen = true
    return {
      maxOutputTokens,
      onTaken: (usage) => (isOpen ? charge.onTaken(usage) : undefined),
      costOf: (usage) => charge.costOf(usage),
      settle: async (outcome) => {
        if (!isOpen) return
        isOpen = false
        charge.settle(outcome.usage)
        await this.#flush({ ...call, charge, outcome })
      },
      defer: (outcome) => {
        if (!isOpen) return undefined
        isOpen = false
        // Without a note: if this process is killed before the result is stored, another one runs the item again.
        return this.#deferCharge({ ...call, charge, outcome })
      },
    }
  }

  #deferCharge(entry: PendingEntry): DeferredCharge {
    const { id, charge } = entry
    return {
      write: async (transact) => {
        await this.#leases.untrack(id)
        let recorded: readonly RecordedCall[] = []
        const writeRow = async (queries: Queries): Promise<void> => {
          recorded = await this.#record(queries, entry)
        }
        try {
          const result = await transact(writeRow)
          this.#onRecorded(recorded)
          return result
        } catch (cause) {
          if (charge.isStored) this.#leases.track(charge)
          throw cause
        }
      },
      discard: async () => {
        await this.#leases.untrack(id)
        // A reservation that is not deleted expires within seconds.
        if (charge.isStored) await this.#leases.remove(this.#database, id).catch(() => {})
      },
    }
  }

  /** Writes one entry once at a time: a late failure would renew the lease of a row that another attempt wrote. */
  #flush(entry: PendingEntry): Promise<void> {
    this.#pending.set(entry.id, entry)
    entry.writing ??= this.#tryToWrite(entry).finally(() => {
      entry.writing = undefined
    })
    return entry.writing
  }

  async #tryToWrite(entry: PendingEntry): Promise<void> {
    const { id, charge } = entry
    try {
      await this.#leases.untrack(id)
      await this.#write(entry)
      this.#pending.delete(id)
    } catch (cause) {
      // Keeps the call for another attempt, except if its values are invalid: they would fail each time.
      if (this.#isClosed || cause instanceof TypeError || cause instanceof RangeError)
        this.#pending.delete(id)
      else this.#leases.track(charge)
      this.#onError(cause)
    }
  }

  async #write(entry: PendingEntry): Promise<void> {
    const recorded = await this.#database.transaction((queries) => this.#record(queries, entry))
    this.#onRecorded(recorded)
  }

  /** Writes the row of a call and removes its lease, in the current transaction. */
  async #record(
    queries: Queries,
    { charge, outcome, ...call }: PendingEntry,
  ): Promise<readonly RecordedCall[]> {
    const { id, caller } = call
    const durationMs = Math.round(outcome.durationMs)
    const { limit, ...note } = charge.toNote(outcome.usage, durationMs)
    const { now } = await lockAccount(queries, caller, this.#clock())
    if (charge.isStored) await this.#leases.remove(queries, id)
    // Not later than now: the clock may have been set back during the call.
    const at = Math.min(charge.at || now - durationMs, now)
    const { tenant } = charge
    const row = { ...note, id, at, caller: charge.caller, tenant, status: outcome.status }
    return recordCall(queries, row, { caller, limit })
  }

  /** Publishes warnings, after the commit. */
  #onRecorded(calls: readonly RecordedCall[]): void {
    for (const { at, nanoUsd, warning, isExhausted } of calls) {
      this.#retention.onWritten(at)
      if (!warning) continue
      this.#warnings.onSpent(warning.spentNanoUsd - nanoUsd, warning)
      if (isExhausted) this.#warnings.onExhausted(warning)
    }
  }
}

/** Replaces what a text of PostgreSQL cannot contain. */
const toStorableName = (name: string | undefined): string | null =>
  name?.toWellFormed().replaceAll('\0', '\uFFFD') ?? null

const chargeKilledEveryMs = 3_000

/**
 * The row of a call with the usage up to now. Throws a `RangeError` if its cost cannot be computed.
 *
 * @param rates undefined for a model without a price
 */
function toNote(call: LedgerCall, rates: Rates | undefined, usage: CallUsage, durationMs: number): CallNote {
  const { caller, model, dialect = null, isBatch = false } = call
  const tokens = countByKind(usage)
  return {
    keyName: toStorableName(caller.key?.name),
    model: toStorableId(model),
    dialect,
    tokens,
    undeliveredTokens: usage.undeliveredTokens,
    nanoUsd: rates ? computeCost(tokens, rates, isBatch) : 0,
    // A call that has used nothing lacks no price, such as one of a model that does not exist.
    isPriced: !!rates || Object.values(tokens).every((count) => count === 0),
    isBatch,
    durationMs,
    limit: caller.spendingLimit && toNanoUsdLimit(caller.spendingLimit),
  }
}
