/** What callers may still spend, and what they hear where that is too little. */

import type { LlmError } from '../../errors.ts'
import { storable } from '../../limits/demand.ts'
import type { Queries } from '../../storage/database.ts'
import type { Caller, SpendLimit } from '../auth/caller.ts'
import { startOf } from './periods.ts'
import { quota, reservedByOthers } from './quota.ts'
import type { ReservedFunds } from './reserved.ts'
import { lockAccount, noteExhausted, spentIn } from './spending.ts'
import { type SpendWarnings, toWarning } from './warnings.ts'

/** In nano-dollars. */
export interface Credit {
  /** By the clock, when the account was locked. */
  readonly now: number
  readonly unspent: bigint
  /** Without what calls that run have reserved. */
  readonly left: bigint
}

/** Locks the caller's account. @param clock an expression of SQL */
export async function creditOf(
  queries: Queries,
  caller: Caller,
  { nanoUsd, per }: SpendLimit,
  { clock, reserved }: { readonly clock: string; readonly reserved: ReservedFunds },
): Promise<Credit> {
  const account = await lockAccount(queries, caller, clock)
  const { now } = account
  const unspent = BigInt(nanoUsd) - (spentIn(account, per, now) ?? 0n)
  const held = await reserved.of(queries, storable(caller.id), { now, since: startOf(per, now) })
  return { now, unspent, left: unspent - BigInt(held) }
}

/** Rolls nothing back: the first refusal of a period is noted. @param isEnough with what calls that run may give back */
export async function refusalOf(
  queries: Queries,
  caller: Caller,
  limit: SpendLimit,
  { now, unspent, isEnough }: Credit & { readonly isEnough: boolean },
  warnings: SpendWarnings,
): Promise<() => LlmError> {
  if (isEnough) return () => reservedByOthers(caller, limit)
  const isFirst = await noteExhausted(queries, caller, limit, now)
  return () => {
    if (isFirst) warnings.onExhausted(toWarning(caller, limit, Number(BigInt(limit.nanoUsd) - unspent)))
    return quota(caller, limit, now)
  }
}
