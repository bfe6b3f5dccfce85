/** Computes the remaining credit of callers, and prepares the errors for too little credit. */

import type { LlmError } from '../../errors.ts'
import { toStorableId } from '../../limits/demand.ts'
import type { Queries } from '../../storage/database.ts'
import type { Caller } from '../auth/caller.ts'
import type { NanoUsdLimit } from '../spending-limit.ts'
import type { CreditLeases } from './credit-leases.ts'
import { chargeKilledCalls, type RecordedCall } from './killed-calls.ts'
import { startOfPeriod } from './periods.ts'
import { lockAccount, noteExhausted, spentIn } from './spending.ts'
import { creditReserved, quotaExceeded } from './spending-errors.ts'
import { type SpendingWarnings, toWarning } from './warnings.ts'

/** In nano-dollars. */
export interface Credit {
  /** Time at which the account was locked. */
  readonly now: number
  /** The spending limit minus the spending of the current period. */
  readonly unspent: bigint
  /** `unspent` minus the reservations of running calls. */
  readonly remaining: bigint
  /** Time until the reservations have expired, in ms. Undefined while a running call may end at any time. */
  readonly freeInMs: number | undefined
}

/**
 * Locks the caller's account, charges its killed calls and computes its credit. Returns the killed calls, too.
 *
 * @param clock SQL expression of the current time in milliseconds
 */
export async function lockCredit(
  queries: Queries,
  caller: Caller,
  { nanoUsd, period }: NanoUsdLimit,
  { clock, reserved }: { readonly clock: string; readonly reserved: CreditLeases },
): Promise<Credit & { readonly killed: readonly RecordedCall[] }> {
  const id = toStorableId(caller.id)
  let account = await lockAccount(queries, caller, clock)
  const { now } = account
  const killed = await chargeKilledCalls(queries, id, { now, leases: reserved })
  if (killed.length > 0) account = await lockAccount(queries, caller, clock)
  const unspent = BigInt(nanoUsd) - (spentIn(account, period, now) ?? 0n)
  const sum = await reserved.sumFor(queries, id, { now, since: startOfPeriod(period, now) })
  return { now, unspent, remaining: unspent - sum.nanoUsd, freeInMs: sum.freeInMs, killed }
}

/**
 * Prepares the error for a caller with too little credit. Records whether this is the first such rejection in
 * the period, so the transaction must be committed.
 *
 * @returns a function to call after the commit. It publishes a warning at the first rejection, and returns
 *   the error
 *
 * @param isEnough whether the credit suffices once running calls have released their reservations
 */
export async function prepareRefusal(
  queries: Queries,
  caller: Caller,
  limit: NanoUsdLimit,
  { now, unspent, freeInMs, isEnough }: Credit & { readonly isEnough: boolean },
  warnings: SpendingWarnings,
): Promise<() => LlmError> {
  if (isEnough) return () => creditReserved(caller, limit, freeInMs)
  const isFirst = await noteExhausted(queries, caller, limit, now)
  return () => {
    if (isFirst) warnings.onExhausted(toWarning(caller, limit, Number(BigInt(limit.nanoUsd) - unspent)))
    return quotaExceeded(caller, limit, now)
  }
}
