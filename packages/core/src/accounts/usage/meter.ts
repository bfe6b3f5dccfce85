/** What one call is let in and charged by: the limits it took from, its place in the queue, its money, and what it has used. */
import type { TokenUsage } from '../../engine/events.ts'
import { type LimitStatus, LlmError } from '../../errors.ts'
import type { Reservation } from '../../limits/limits.ts'
import type { CallStatus, Funds, Ledger, LedgerCall, Most } from './ledger.ts'
import type { MeteredCall, MeteringOptions } from './metering.ts'

/** Tokens of an answer that are taken from a limit in advance, each time: many clients ask for more than they ever get. */
const reservedOutput = 1_024

/** Of the limits of a call, up to now. */
interface Taken {
  readonly reservation: Reservation
  tokens: number
}

/** For what is still to be written. */
export const reservedOf = (maxTokens = Number.POSITIVE_INFINITY, written = 0): number =>
  Math.max(0, Math.min(maxTokens - written, reservedOutput))

export interface MeterParts {
  readonly taken: Taken | undefined
  readonly enterQueue: (signal: AbortSignal) => Promise<(() => void) | undefined>
  readonly onSettled: () => void
}

/** What an answer is let in and charged by. */
export interface CallMeter extends Pick<Meter, 'limits' | 'isCounted' | 'isOpen' | 'onProgress' | 'settle'> {
  /** @param maxTokens of this answer, which may be one of several: more than that is for others */
  admit(signal: AbortSignal, most: () => Promise<Most>, maxTokens?: number): Promise<number | undefined>
}

/** Of one call. */
export class Meter implements CallMeter {
  /** How the limits stood when it was let in. */
  readonly limits: readonly LimitStatus[]
  readonly #call: LedgerCall & MeteredCall
  readonly #options: MeteringOptions
  readonly #taken: Taken | undefined
  readonly #enterQueue: MeterParts['enterQueue']
  readonly #onSettled: () => void
  readonly #startedAt = performance.now()
  #exit: (() => void) | undefined
  #funds: Promise<Funds> | undefined
  /** From when on it costs a request, and has a row: something was done for it. */
  #hasBegun = false
  /** Up to now. */
  #usage: TokenUsage | undefined
  #isOpen = true

  constructor(call: LedgerCall & MeteredCall, options: MeteringOptions, parts: MeterParts) {
    this.#call = call
    this.#options = options
    this.#taken = parts.taken
    this.#enterQueue = parts.enterQueue
    this.#onSettled = parts.onSettled
    this.limits = parts.taken?.reservation.limits ?? []
  }

  /** Whether its caller is counted by tokens. */
  get isCounted(): boolean {
    return this.#options.ledger !== undefined || this.#taken !== undefined
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
  async admit(signal: AbortSignal, most: () => Promise<Most>): Promise<number | undefined> {
    this.#expectOpen()
    this.#exit = await this.#enterQueue(signal)
    if (!this.#exit) return undefined
    // Closed while it waited.
    if (!this.#isOpen) this.#exit()
    this.#expectOpen()
    const { ledger } = this.#options
    const maxOutputTokens = ledger ? await this.#reserve(ledger, most) : Number.POSITIVE_INFINITY
    this.#expectOpen()
    this.#hasBegun = true
    return maxOutputTokens
  }

  async #reserve(ledger: Ledger, most: () => Promise<Most>): Promise<number> {
    const funds = Promise.resolve(ledger.open(this.#call))
    if (ledger.isLimited(this.#call)) {
      // Who has nothing left makes no model load and count.
      await ledger.expectCredit(this.#call)
      this.#funds = funds
      this.#hasBegun = true
      const counted = await most()
      this.#hasBegun = false
      this.#expectOpen()
      this.#funds = ledger.reserve(this.#call, counted)
    } else this.#funds = funds
    return (await this.#funds).maxOutputTokens
  }

  #expectOpen(): void {
    if (!this.#isOpen) throw closing()
  }

  /** Takes more from the limits where its answer gets longer than what was taken for it. The answer does not wait, and cannot fail by it. */
  onProgress(usage: TokenUsage): void {
    this.#usage = usage
    const { inputTokens, outputTokens } = usage
    if (!this.#taken || !this.#isOpen) return
    const missing = inputTokens + outputTokens - this.#taken.tokens
    if (!(missing > 0)) return
    const tokens = missing + reservedOf(this.#call.maxTokens, outputTokens)
    this.#taken.tokens += tokens
    this.#taken.reservation.take({ requests: 0, tokens }).catch(this.#options.onError)
  }

  /**
   * Once: what is called later does nothing. Never rejects.
   *
   * @param used absent: the model has read nothing
   */
  async settle(used: TokenUsage | undefined, status: CallStatus): Promise<void> {
    if (!this.#isOpen) return
    const usage = used ?? unused
    this.#isOpen = false
    this.#exit?.()
    const durationMs = performance.now() - this.#startedAt
    const tokens = usage.inputTokens + usage.outputTokens
    const limits = this.#hasBegun
      ? this.#taken?.reservation.settle({ requests: 1, tokens })
      : this.#taken?.reservation.release()
    // Whoever waits for them hears of a refusal.
    const funds = await this.#funds?.catch(() => undefined)
    await Promise.all([limits?.catch(this.#options.onError), funds?.settle({ usage, status, durationMs })])
    this.#onSettled()
  }

  /** Its app ends. */
  close(): Promise<void> {
    return this.settle(this.#usage, 'aborted')
  }
}

/** A model has read nothing, and said nothing. */
const unused: TokenUsage = {
  inputTokens: 0,
  reusedTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: { '5m': 0, '1h': 0 },
  outputTokens: 0,
}

export const closing = (): LlmError =>
  new LlmError('overloaded', 'The server is closing.', { retryAfterMs: 1_000 })
