/**
 * The charge of one running call. It knows what the reader has got, and has that noted in the lease of the call, so
 * that the note is at most 64 tokens old. An answer of less than 32 tokens and two seconds is not noted.
 */
import { toStorableId } from '../../limits/demand.ts'
import { type Caller, tenantOf } from '../auth/caller.ts'
import type { CallUsage } from './call-usage.ts'
import type { CreditLeases, LeasedCall } from './credit-leases.ts'
import type { CallNote } from './killed-calls.ts'

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

/** The reader gets no more text while the note is older than this number of output tokens. */
const maxUnnotedTokens = 64
/** The next note is written while the reader continues. */
const noteEveryTokens = maxUnnotedTokens / 2

export interface RunningChargeParts {
  readonly leases: CreditLeases
  /** Returns the row of the call. Throws a `RangeError` if its cost cannot be computed. */
  readonly toNote: (usage: CallUsage, durationMs: number) => CallNote
}

export class RunningCharge implements LeasedCall {
  readonly id: string
  readonly caller: string
  readonly tenant: string
  readonly at: number
  readonly nanoUsd: number
  /** Whether the lease can be in the database. */
  isStored: boolean
  readonly #parts: RunningChargeParts
  readonly toNote: RunningChargeParts['toNote']
  readonly #startedAt = performance.now()
  /** What the reader has got. Changes while the call runs. */
  #usage: CallUsage | undefined
  /** Output tokens in the last note, and in the last note that is in the database. */
  #lastTokens = 0
  #notedTokens = 0
  #catchingUp: Promise<void> | undefined
  #isSettled = false

  /** @param reserved undefined for a call without a reservation */
  constructor(
    call: LedgerCall,
    reserved: { readonly at: number; readonly nanoUsd: number } | undefined,
    parts: RunningChargeParts,
  ) {
    this.id = call.id
    this.caller = toStorableId(call.caller.id)
    this.tenant = toStorableId(tenantOf(call.caller))
    this.at = reserved?.at ?? 0
    this.nanoUsd = reserved?.nanoUsd ?? 0
    this.isStored = reserved !== undefined
    this.#parts = parts
    this.toNote = parts.toNote
  }

  /** Returns undefined without a price, and if the cost cannot be computed. */
  costOf(usage: CallUsage): number | undefined {
    try {
      const { isPriced, nanoUsd } = this.toNote(usage, 0)
      return isPriced ? nanoUsd : undefined
    } catch {
      return undefined
    }
  }

  readonly note = (): string | null => {
    if (!this.#usage) return null
    this.#lastTokens = this.#usage.outputTokens
    const durationMs = Math.round(performance.now() - this.#startedAt)
    try {
      const note = this.toNote(this.#usage, durationMs)
      const numbers = [note.nanoUsd, note.undeliveredTokens, ...Object.values(note.tokens)]
      return numbers.every(Number.isSafeInteger) ? JSON.stringify(note) : null
    } catch {
      // A custom engine may report any number. If it cannot be charged, the other calls are noted all the same.
      return null
    }
  }

  readonly onNoted = (): void => {
    this.#notedTokens = this.#lastTokens
  }

  /** @param usage may change until the next call of this method */
  onTaken(usage: CallUsage): Promise<void> | undefined {
    if (!this.#usage && !this.isStored) this.#parts.leases.track(this)
    this.#usage = usage
    if (this.#unnotedTokens < noteEveryTokens) return undefined
    this.#catchingUp ??= this.#catchUp().finally(() => {
      this.#catchingUp = undefined
    })
    if (!this.#isBehind) return undefined
    this.#parts.leases.notes.hurry()
    return this.#catchingUp
  }

  /** From now on, the note says what the call has used in total. */
  settle(usage: CallUsage): void {
    this.#isSettled = true
    this.#usage = usage
  }

  get #unnotedTokens(): number {
    return (this.#usage?.outputTokens ?? 0) - this.#notedTokens
  }

  get #isBehind(): boolean {
    return this.#unnotedTokens > maxUnnotedTokens
  }

  /**
   * Never rejects. A note that fails is skipped, since the answer must not wait for a broken database. The renewal
   * of the leases reports that error, too.
   */
  async #catchUp(): Promise<void> {
    const { notes } = this.#parts.leases
    while (!this.#isSettled && this.#unnotedTokens >= noteEveryTokens) {
      const written = notes.write(this.id)
      if (this.#isBehind) notes.hurry()
      await written.catch(() => {
        this.#notedTokens = this.#usage?.outputTokens ?? 0
      })
    }
  }
}
