/** What one call is let in and charged by: the limits it took from, its place in the queue, its money, and what it has used. */
import type { TokenUsage } from '../../engine/events.ts'
import { type LimitStatus, LlmError } from '../../errors.ts'
import type { Reservation } from '../../limits/limits.ts'
import type { CallStatus, CreditReservation, Ledger, LedgerCall, WorstCase } from './ledger.ts'
import type { MeteredCall, MeteringOptions } from './metering.ts'

/** Tokens of an answer that are taken from a limit in advance, each time: many clients ask for more than they ever get. */
const reservedOutputTokens = 1_024

/** Of the limits of a call, up to now. */
interface LimitReservation {
  readonly reservation: Reservation
  tokens: number
}

/** For what is still to be written. */
export const outputTokensToReserve = (maxTokens = Number.POSITIVE_INFINITY, written = 0): number =>
  Math.max(0, Math.min(maxTokens - written, reservedOutputTokens))

export interface MeterParts {
  readonly limitReservation: LimitReservation | undefined
  readonly enterQueue: (signal: AbortSignal) => Promise<(() => void) | undefined>
  readonly onSettled: () => void
}

/** What an answer is let in and charged by. */
export interface CallMeter extends Pick<Meter, 'limits' | 'isCounted' | 'isOpen' | 'onProgress' | 'settle'> {
  /** @param maxTokens of this answer, which may be one of several: more than that is for others */
  admit(
    signal: AbortSignal,
    worstCaseOf: () => Promise<WorstCase>,
    maxTokens?: number,
  ): Promise<number | undefined>
}

/** Of one call. */
export class Meter implements CallMeter {
  /** How the limits stood when it was let in. */
  readonly limits: readonly LimitStatus[]
  readonly #call: LedgerCall & MeteredCall
  readonly #options: MeteringOptions
  readonly #limitReservation: LimitReservation | undefined
  readonly #enterQueue: MeterParts['enterQueue']
  readonly #onSettled: () => void
  readonly #startedAt = performance.now()
  #leaveQueue: (() => void) | undefined
  #credit: Promise<CreditReservation> | undefined
  /** From when on it costs a request, and has a row: something was done for it. */
  #hasBegun = false
  /** Up to now. */
  #usage: TokenUsage | undefined
  #isOpen = true

  constructor(call: LedgerCall & MeteredCall, options: MeteringOptions, parts: MeterParts) {
    this.#call = call
    this.#options = options
    this.#limitReservation = parts.limitReservation
    this.#enterQueue = parts.enterQueue
    this.#onSettled = parts.onSettled
    this.limits = parts.limitReservation?.reservation.limits ?? []
  }

  /** Whether its caller is counted by tokens. */
  get isCounted(): boolean {
    return this.#options.ledger !== undefined || this.#limitReservation !== undefined
  }

  /** False when it is settled: what is used from then on nobody pays for. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  /**
   * Waits for its turn in front of the engine, and reserves what the call can cost at most: `most` counts, and is only asked where that
   * has to be known. Resolves with how many tokens may be said; with nothing where its caller has left. Throws `overloaded`,
   * `quota`, and what `ledger.reserve` throws besides.
   */
  async admit(signal: AbortSignal, worstCaseOf: () => Promise<WorstCase>): Promise<number | undefined> {
    this.#expectOpen()
    this.#leaveQueue = await this.#enterQueue(signal)
    if (!this.#leaveQueue) return undefined
    // Closed while it waited.
    if (!this.#isOpen) this.#leaveQueue()
    this.#expectOpen()
    const { ledger } = this.#options
    const maxOutputTokens = ledger ? await this.#reserve(ledger, worstCaseOf) : Number.POSITIVE_INFINITY
    this.#expectOpen()
    this.#hasBegun = true
    return maxOutputTokens
  }

  async #reserve(ledger: Ledger, worstCaseOf: () => Promise<WorstCase>): Promise<number> {
    const postpaid = Promise.resolve(ledger.openPostpaid(this.#call))
    if (ledger.isLimited(this.#call)) {
      // Who has nothing left makes no model load and count.
      await ledger.expectCredit(this.#call)
      this.#credit = postpaid
      this.#hasBegun = true
      const worstCase = await worstCaseOf()
      this.#hasBegun = false
      this.#expectOpen()
      this.#credit = ledger.reserve(this.#call, worstCase)
    } else this.#credit = postpaid
    return (await this.#credit).maxOutputTokens
  }

  #expectOpen(): void {
    if (!this.#isOpen) throw serverClosing()
  }

  /** Takes more from the limits where its answer gets longer than what was taken for it. The answer does not wait, and cannot fail by it. */
  onProgress(usage: TokenUsage): void {
    this.#usage = usage
    const { inputTokens, outputTokens } = usage
    if (!this.#limitReservation || !this.#isOpen) return
    const missing = inputTokens + outputTokens - this.#limitReservation.tokens
    if (!(missing > 0)) return
    const tokens = missing + outputTokensToReserve(this.#call.maxTokens, outputTokens)
    this.#limitReservation.tokens += tokens
    this.#limitReservation.reservation.take({ requests: 0, tokens }).catch(this.#options.onError)
  }

  /**
   * Once: what is called later does nothing. Never rejects.
   *
   * @param used absent: the model has read nothing
   */
  async settle(used: TokenUsage | undefined, status: CallStatus): Promise<void> {
    if (!this.#isOpen) return
    const usage = used ?? noUsage
    this.#isOpen = false
    this.#leaveQueue?.()
    const durationMs = performance.now() - this.#startedAt
    const tokens = usage.inputTokens + usage.outputTokens
    const limits = this.#hasBegun
      ? this.#limitReservation?.reservation.settle({ requests: 1, tokens })
      : this.#limitReservation?.reservation.release()
    // Whoever waits for them hears of a refusal.
    const credit = await this.#credit?.catch(() => undefined)
    await Promise.all([limits?.catch(this.#options.onError), credit?.settle({ usage, status, durationMs })])
    this.#onSettled()
  }

  /** Its app ends. */
  close(): Promise<void> {
    return this.settle(this.#usage, 'aborted')
  }
}

/** A model has read nothing, and said nothing. */
const noUsage: TokenUsage = {
  inputTokens: 0,
  reusedTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: { '5m': 0, '1h': 0 },
  outputTokens: 0,
}

export const serverClosing = (): LlmError =>
  new LlmError('overloaded', 'The server is closing.', { retryAfterMs: 1_000 })
