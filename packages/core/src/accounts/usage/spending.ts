/** Stores the spending of each caller in the current day, the current month and its lifetime. */

import { toStorableId } from '../../limits/demand.ts'
import type { Queries } from '../../storage/database.ts'
import type { Caller } from '../auth/caller.ts'
import type { NanoUsdLimit } from '../spending-limit.ts'
import { dayOf, monthOf, startOfPeriod } from './periods.ts'

/** Sums in nano-dollars. Sums above `Number.MAX_SAFE_INTEGER` are bigints. */
export interface Spending {
  readonly day: string
  readonly day_spent: number | bigint
  readonly month: string
  readonly month_spent: number | bigint
  readonly lifetime_spent: number | bigint
}

/** The account of a caller. The current transaction has locked its row. */
export interface SpendingAccount extends Spending {
  readonly now: number
}

/**
 * Locks the caller's account until the transaction ends.
 *
 * @param clock SQL expression of the current time in milliseconds
 */
export async function lockAccount(
  { query }: Queries,
  caller: Caller,
  clock: string,
): Promise<SpendingAccount> {
  const id = toStorableId(caller.id)
  const [row] = await query<SpendingAccount>(
    `INSERT INTO modelmount_spending (caller, day, day_spent, month, month_spent, lifetime_spent, exhausted)
     VALUES (?, '', 0, '', 0, 0, -1)
     ON CONFLICT (caller) DO UPDATE SET lifetime_spent = modelmount_spending.lifetime_spent
     RETURNING day, day_spent, month, month_spent, lifetime_spent, ${clock} AS now`,
    [id],
  )
  const account = row as SpendingAccount
  const [today, thisMonth] = [dayOf(account.now), monthOf(account.now)]
  if (account.day <= today && account.month <= thisMonth) return account
  // The clock has gone back. Spending that was recorded for a later day or month counts for the current one.
  // It would otherwise be lost.
  const day = earlierOf(account.day, today)
  const month = earlierOf(account.month, thisMonth)
  await query('UPDATE modelmount_spending SET day = ?, month = ? WHERE caller = ?', [day, month, id])
  return { ...account, day, month }
}

/**
 * Adds to the spending of an account, which must be locked.
 *
 * @param at time of the spending, which counts for the day and the month of this time
 */
export async function addSpending(
  { query }: Queries,
  caller: Caller,
  at: number,
  nanoUsd: number,
): Promise<Spending> {
  const [spending] = await query<Spending>(
    `INSERT INTO modelmount_spending (caller, day, day_spent, month, month_spent, lifetime_spent, exhausted)
     VALUES (?, ?, ?, ?, ?, ?, -1)
     ON CONFLICT (caller) DO UPDATE SET ${['day', 'month'].map(addToPeriodSql).join(', ')},
       lifetime_spent = modelmount_spending.lifetime_spent + excluded.lifetime_spent
     RETURNING day, day_spent, month, month_spent, lifetime_spent`,
    [toStorableId(caller.id), dayOf(at), nanoUsd, monthOf(at), nanoUsd, nanoUsd],
  )
  return spending as Spending
}

/**
 * Records that the limit is exhausted in the period that contains `at`. Returns false if it was recorded
 * before.
 */
export async function noteExhausted(
  { query }: Queries,
  { id }: Caller,
  { nanoUsd, period }: NanoUsdLimit,
  at: number,
): Promise<boolean> {
  const start = startOfPeriod(period, at)
  const noted = await query(
    `UPDATE modelmount_spending SET exhausted = ?, exhausted_limit = ?
     WHERE caller = ? AND (exhausted < ? OR exhausted_limit < ?) RETURNING caller`,
    [start, nanoUsd, toStorableId(id), start, nanoUsd],
  )
  return noted.length > 0
}

/** Returns the spending in the period that contains `at`. Undefined if the sums are for another period. */
export function spentIn(spending: Spending, period: NanoUsdLimit['period'], at: number): bigint | undefined {
  if (period === 'lifetime') return BigInt(spending.lifetime_spent)
  if (period === 'day') return spending.day === dayOf(at) ? BigInt(spending.day_spent) : undefined
  return spending.month === monthOf(at) ? BigInt(spending.month_spent) : undefined
}

const earlierOf = (a: string, b: string): string => (a < b ? a : b)

/** SQL that adds to the sum of a period. A charge for a past period leaves this sum unchanged. */
const addToPeriodSql = (period: string): string =>
  `${period}_spent = CASE
     WHEN excluded.${period} > modelmount_spending.${period} THEN excluded.${period}_spent
     WHEN excluded.${period} = modelmount_spending.${period} THEN modelmount_spending.${period}_spent + excluded.${period}_spent
     ELSE modelmount_spending.${period}_spent END,
   ${period} = CASE WHEN excluded.${period} > modelmount_spending.${period} THEN excluded.${period} ELSE modelmount_spending.${period} END`
