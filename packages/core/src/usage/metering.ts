/** What stands between a caller and the engine: limits, then money, then the queue; and afterwards what was really used. */
import type { Caller } from '../caller.ts'
import type { TokenUsage } from '../engine/events.ts'
import { type LimitStatus, LlmError } from '../errors.ts'
import { FairQueue } from '../limits/fair-queue.ts'
import type { Limits, RateLimiter, Reservation, Subject } from '../limits/limits.ts'
import type { CallStatus, Funds, Ledger, LedgerCall, Most } from './ledger.ts'

export interface MeteringOptions {
  readonly limiter: RateLimiter
  /** Absent: nobody keeps what was used. */
  readonly ledger: Ledger | undefined
  readonly tiers: Readonly<Record<string, Limits>>
  /** Of all callers of a model together. */
  readonly subjectOf: (model: string) => Subject | undefined
  /** Of each model. Absent: the engine's own is enough. */
  readonly queue: { readonly places: number; readonly maxWaiting: number } | undefined
  /** Hears of what callers cannot help, and do not notice. */
  readonly onError: (cause: unknown) => void
}

export interface MeteredCall {
  /** Of the answer. */
  readonly id: string
  readonly caller?: Caller | undefined
  readonly model: string
  readonly dialect?: string | undefined
  readonly isBatch?: boolean | undefined
  /** As far as its text says: the model that would count it may have to be loaded. What it really had is known afterwards. */
  readonly expectedInput: number
  /** Absent: nobody says. */
  readonly maxTokens?: number | undefined
  /** It waits in no queue: nobody waits for it, or the engine has one of its own for such. */
  readonly isUnqueued?: boolean | undefined
}

/** Tokens of an answer that are taken from a limit in advance: many clients ask for more than they ever get. */
const reservedOutput = 1_024

/** A token has some four bytes, and a message some tokens around it. */
export const expectedTokens = (textLength: number, messages = 0): number =>
  Math.ceil(textLength / 4) + 4 * messages

/** Who asks in the app itself, and names nobody. */
const nobody: Caller = { id: '' }

export class Metering {
  readonly #options: MeteringOptions
  /** By model: those that somebody uses. */
  readonly #queues = new Map<string, { readonly queue: FairQueue; users: number }>()

  constructor(options: MeteringOptions) {
    this.#options = options
  }

  /** Takes from all limits or from none: throws `rate_limit`. Nothing where nobody counts. */
  async begin(call: MeteredCall): Promise<Meter | undefined> {
    const { limiter, ledger, queue } = this.#options
    const { caller = nobody } = call
    if (caller.spendLimit && !ledger)
      throw new TypeError('A caller with `spendLimit` needs the option `database` of createLlm.')
    const subjects = this.#subjects(caller, call.model)
    if (subjects.length === 0 && !ledger && !queue) return undefined

    const tokens = call.expectedInput + Math.min(call.maxTokens ?? reservedOutput, reservedOutput)
    const reservation =
      subjects.length > 0 ? await limiter.reserve(subjects, { requests: 1, tokens }) : undefined
    return new Meter({ ...call, caller }, this.#options, reservation, (signal) =>
      call.isUnqueued ? passing(signal) : this.#enter(call.model, caller.id, signal),
    )
  }

  #subjects(caller: Caller, model: string): readonly Subject[] {
    const { tiers, subjectOf } = this.#options
    if (caller.tier !== undefined && !tiers[caller.tier]) throw unknownTier(caller.tier)
    const own = { ...(caller.tier !== undefined && tiers[caller.tier]), ...given(caller.limits) }
    const ofModel = subjectOf(model)
    return [
      ...(Object.keys(own).length > 0 ? [{ id: `caller:${caller.id}`, limits: own }] : []),
      ...(ofModel ? [ofModel] : []),
    ]
  }

  async #enter(model: string, caller: string, signal: AbortSignal): Promise<(() => void) | undefined> {
    const { queue } = this.#options
    if (!queue) return passing(signal)
    const line = this.#queues.get(model) ?? { queue: new FairQueue(queue), users: 0 }
    this.#queues.set(model, line)
    line.users++
    const leave = (): void => {
      if (--line.users === 0) this.#queues.delete(model)
    }
    try {
      const exit = await line.queue.take(caller, signal)
      if (!exit) {
        leave()
        return undefined
      }
      return () => {
        exit()
        leave()
      }
    } catch (error) {
      leave()
      throw error
    }
  }
}

const passing = async (signal: AbortSignal): Promise<(() => void) | undefined> =>
  signal.aborted ? undefined : () => {}

/** Of one call. */
export class Meter {
  /** How the limits stood when it was let in. */
  readonly limits: readonly LimitStatus[]
  readonly #call: LedgerCall & MeteredCall
  readonly #options: MeteringOptions
  readonly #reservation: Reservation | undefined
  readonly #enterQueue: (signal: AbortSignal) => Promise<(() => void) | undefined>
  readonly #startedAt = performance.now()
  #funds: Funds | undefined
  #exit: (() => void) | undefined
  #isOpen = true

  constructor(
    call: LedgerCall & MeteredCall,
    options: MeteringOptions,
    reservation: Reservation | undefined,
    enterQueue: (signal: AbortSignal) => Promise<(() => void) | undefined>,
  ) {
    this.#call = call
    this.#options = options
    this.#reservation = reservation
    this.#enterQueue = enterQueue
    this.limits = reservation?.limits ?? []
  }

  /** Whether its caller is counted by tokens. */
  get isCounted(): boolean {
    return this.#options.ledger !== undefined || this.#reservation !== undefined
  }

  /**
   * Reserves what it can cost at most: `most` counts, and is only asked where that has to be known. Resolves with how many tokens may
   * be said. Throws `quota`.
   */
  async reserve(most: () => Promise<Most>): Promise<number> {
    const { ledger } = this.#options
    if (!ledger) return Number.POSITIVE_INFINITY
    if (!ledger.isLimited(this.#call)) this.#funds = await ledger.reserve(this.#call, { inputTokens: 0 })
    else {
      // Who has nothing left makes no model load and count.
      await ledger.expectCredit(this.#call)
      this.#funds = await ledger.reserve(this.#call, await most())
    }
    return this.#funds.maxOutputTokens
  }

  /** Waits for its turn in front of the engine. False where its caller has left. Throws `overloaded`. */
  async enter(signal: AbortSignal): Promise<boolean> {
    this.#exit = await this.#enterQueue(signal)
    return this.#exit !== undefined
  }

  /**
   * Once: what is called later does nothing. Never rejects.
   *
   * @param usage absent: the model has read nothing
   */
  async settle(usage: TokenUsage | undefined, status: CallStatus): Promise<void> {
    if (!this.#isOpen) return
    this.#isOpen = false
    const wasAdmitted = this.#exit !== undefined
    this.#exit?.()
    const tokens = usage ? usage.inputTokens + usage.outputTokens : 0
    const limits = wasAdmitted
      ? this.#reservation?.settle({ requests: 1, tokens })
      : this.#reservation?.release()
    const durationMs = performance.now() - this.#startedAt
    await Promise.all([
      limits?.catch(this.#options.onError),
      usage ? this.#funds?.settle({ usage, status, durationMs }) : this.#funds?.release(),
    ])
  }
}

const given = (limits: Limits = {}): Limits =>
  Object.fromEntries(Object.entries(limits).filter(([, limit]) => limit !== undefined))

const unknownTier = (tier: string): LlmError =>
  new LlmError('internal', `The tier "${tier}" of this caller is not one of the server's.`, { setup: true })
