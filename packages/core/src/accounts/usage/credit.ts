/** Remaining credit of callers, and the errors for too little of it. */

import type { LlmError } from '../../errors.ts'
import { toStorableId } from '../../limits/demand.ts'
import type { Queries } from '../../storage/database.ts'
import type { Caller } from '../auth/caller.ts'
import type { NanoUsdLimit } from '../spending-limit.ts'
import type { CreditLeases } from './credit-leases.ts'
import { startOfPeriod } from './periods.ts'
import { lockAccount, noteExhausted, spentIn } from './spending.ts'
import { creditReserved, quotaExceeded } from './spending-errors.ts'
import { type SpendingWarnings, toWarning } from './warnings.ts'

/** In nano-dollars. */
export interface Credit {
  /** Time at which the account was locked. */
  readonly now: number
  readonly unspent: bigint
  /** `unspent` without the reservations of running calls. */
  readonly remaining: bigint
}

/** Locks the caller's account. @param clock an expression of SQL */
export async function lockCredit(
  queries: Queries,
  caller: Caller,
  { nanoUsd, period }: NanoUsdLimit,
  { clock, reserved }: { readonly clock: string; readonly reserved: CreditLeases },
): Promise<Credit> {
  const account = await lockAccount(queries, caller, clock)
  const { now } = account
  const unspent = BigInt(nanoUsd) - (spentIn(account, period, now) ?? 0n)
  const reservedNanoUsd = await reserved.sumFor(queries, toStorableId(caller.id), {
    now,
    since: startOfPeriod(period, now),
  })
  return { now, unspent, remaining: unspent - BigInt(reservedNanoUsd) }
}

/** Records the first rejection of a period, so the transaction must commit. @param isEnough once running calls release their reservations */
export async function prepareRefusal(
  queries: Queries,
  caller: Caller,
  limit: NanoUsdLimit,
  { now, unspent, isEnough }: Credit & { readonly isEnough: boolean },
  warnings: SpendingWarnings,
): Promise<() => LlmError> {
  if (isEnough) return () => creditReserved(caller, limit)
  const isFirst = await noteExhausted(queries, caller, limit, now)
  return () => {
    if (isFirst) warnings.onExhausted(toWarning(caller, limit, Number(BigInt(limit.nanoUsd) - unspent)))
    return quotaExceeded(caller, limit, now)
  }
}
