/** Reserves the worst-case cost of a call, and charges its usage. */

import type { CallUsage } from '../../accounts/usage/call-usage.ts'
import type { CreditReservation, Ledger } from '../../accounts/usage/ledger.ts'
import { withTimeout } from '../../util/with-timeout.ts'
import type { Call, CallEnd } from '../call.ts'
import type { CallStep } from '../step.ts'

export class CreditStep implements CallStep {
  readonly name = 'credit'
  /** True, because counting the tokens of the prompt may load the model. */
  readonly mayWait = true
  readonly #ledger: Ledger

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  /**
   * Rejects with an `LlmError`: `permission` for a model without a price, `quota` if the credit is too low, `rate_limit`
   * while running calls have reserved the rest.
   */
  async before(call: Call): Promise<void> {
    if (!usesTokens(call) || call.forwarded) return
    const ledgerCall = toLedgerCall(call)
    const unreserved = this.#ledger.openPostpaid(ledgerCall)
    const postpaid = Promise.resolve(unreserved)
    if (!this.#ledger.isLimited(ledgerCall)) {
      call.credit = postpaid
      watchCredit(call, unreserved)
      return
    }
    // First what needs no prompt: counting it might load the model in vain. A model that does not exist fails there.
    if (call.model) this.#ledger.expectPrice(ledgerCall)
    await this.#ledger.expectCredit(ledgerCall)
    call.throwIfOver()
    call.credit = postpaid
    // The engine counts the prompt. If that fails, the call counts as a request and gets a row in the ledger.
    call.hasStarted = true
    const { outputRoom = Number.POSITIVE_INFINITY, ...worstCase } = await call.computeWorstCase()
    call.throwIfOver()
    call.hasStarted = false
    const room = Math.min(outputRoom, call.maxOutputTokens)
    call.credit = this.#ledger.reserve(ledgerCall, { ...worstCase, outputRoom: room })
    const credit = await call.credit
    call.maxOutputTokens = credit.maxOutputTokens
    watchCredit(call, credit)
  }

  onTaken(call: Call, usage: CallUsage): Promise<unknown> | undefined {
    return call.noteProgress?.(usage)
  }

  async after(call: Call, { usage = noUsage, status, durationMs }: CallEnd): Promise<void> {
    // If the reservation failed, `before` has already thrown the error.
    const credit = await call.credit?.catch(() => undefined)
    if (!credit) return
    const outcome = { usage, status, durationMs }
    if (call.isReplaced) return credit.defer(outcome)?.discard()
    if (!call.batchItem) return credit.settle(outcome)
    const charge = credit.defer(outcome)
    if (charge) call.batchItem.onCharge(charge)
  }
}

function watchCredit(call: Call, credit: CreditReservation): void {
  call.costOf = (usage) => credit.costOf(usage)
  noteProgress(call, credit)
}

/**
 * Lets the ledger note what the reader gets. A reader waits for a slow database, but only once for 2 s: the answer
 * is worth more than its note.
 */
function noteProgress(call: Call, credit: CreditReservation): void {
  // The answer of an item is charged when it is stored as a whole.
  if (!call.isPassedOn || call.batchItem) return
  let isSlow = false
  const wait = async (noted: Promise<void>): Promise<void> => {
    const inTime = noted.then(() => {
      isSlow = false
      return true
    })
    isSlow = !(await withTimeout(inTime, noteTimeoutMs))
  }
  call.noteProgress = (usage) => {
    const noted = credit.onTaken(usage)
    return noted && !isSlow ? wait(noted) : undefined
  }
}

const noteTimeoutMs = 2_000

const usesTokens = ({ kind }: Call): boolean => kind === 'generate' || kind === 'embed' || kind === 'rerank'

const toLedgerCall = ({ id, caller = { id: '' }, modelName: model, dialect, batchItem }: Call) => ({
  ...{ id, caller, model },
  ...(dialect !== undefined && { dialect }),
  ...(batchItem && { isBatch: true }),
})

const noUsage: CallUsage = {
  inputTokens: 0,
  reusedTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: { '5m': 0, '1h': 0 },
  outputTokens: 0,
  undeliveredTokens: 0,
}
