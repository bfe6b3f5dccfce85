/** Stores the spending of each caller in the current day, the current month and its lifetime. */

import { toStorableId } from '../../limits/demand.ts'
import type { Queries } from '../../storage/database.ts'
import type { Caller } from '../auth/caller.ts'
import { type NanoUsdLimit, toNanoUsdLimit } from '../spending-limit.ts'
import { dayOf, monthOf, nextPeriodStart, startOfPeriod } from './periods.ts'

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
  caller: Pick<Caller, 'id'>,
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
  // The clock has gone back. The sums of the current day and month were replaced by those of a later one, so they
  // are computed again. Spending that was recorded for a later day counts, too.
  const day = earlierOf(account.day, today)
  const month = earlierOf(account.month, thisMonth)
  const [since] = await query<{ day_spent: number | bigint | null; month_spent: number | bigint | null }>(
    `SELECT sum(CASE WHEN day >= ? THEN nano_usd ELSE 0 END) AS day_spent, sum(nano_usd) AS month_spent
     FROM modelmount_usage_days WHERE caller = ? AND day >= ?`,
    [day, id, `${month}-01`],
  )
  const day_spent = largerOf(account.day_spent, since?.day_spent ?? 0)
  const month_spent = largerOf(account.month_spent, since?.month_spent ?? 0)
  await query(
    'UPDATE modelmount_spending SET day = ?, day_spent = ?, month = ?, month_spent = ? WHERE caller = ?',
    [day, day_spent, month, month_spent, id],
  )
  return { ...account, day, day_spent, month, month_spent }
}

/**
 * Adds to the spending of an account, which must be locked.
 *
 * @param at time of the spending, which counts for the day and the month of this time
 */
export async function addSpending(
  { query }: Queries,
  caller: Pick<Caller, 'id'>,
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
  { id }: Pick<Caller, 'id'>,
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

/** What a key with a spending limit has spent in its current period. */
export interface SpendingState {
  readonly nanoUsd: bigint
  readonly limitNanoUsd: bigint
  readonly period: NanoUsdLimit['period']
  /** Start of the next period. Absent for a lifetime. */
  readonly resetsAt?: Date
}

/**
 * Returns the spending of callers with a spending limit, by id, with one query. Without the credit that running calls
 * have reserved.
 */
export async function querySpending(
  queries: Queries,
  clock: string,
  callers: readonly Pick<Caller, 'id' | 'spendingLimit'>[],
): Promise<ReadonlyMap<string, SpendingState>> {
  const limits = new Map(
    callers.flatMap(({ id, spendingLimit }) => (spendingLimit ? [[id, toNanoUsdLimit(spendingLimit)]] : [])),
  )
  if (limits.size === 0) return new Map()
  const ids = [...limits.keys()].map(toStorableId)
  const rows = await queries.query<Spending & { readonly caller: string; readonly now: number }>(
    `SELECT caller, day, day_spent, month, month_spent, lifetime_spent, ${clock} AS now
     FROM modelmount_spending WHERE caller IN (${ids.map(() => '?').join(', ')})`,
    ids,
  )
  const rowsById = new Map(rows.map((row) => [row.caller, row]))
  const now = rows[0]?.now ?? Date.now()
  return new Map(
    [...limits].map(([id, { nanoUsd, period }]) => {
      const row = rowsById.get(toStorableId(id))
      const resetsAt = nextPeriodStart(period, now)
      return [
        id,
        {
          nanoUsd: (row && spentIn(row, period, now)) ?? 0n,
          limitNanoUsd: BigInt(nanoUsd),
          period,
          ...(resetsAt && { resetsAt }),
        },
      ]
    }),
  )
}

/** Deletes the spending and the reserved credit of callers, and returns the number of accounts. */
export async function deleteSpending({ query }: Queries, callers: readonly string[]): Promise<number> {
  if (callers.length === 0) return 0
  const list = callers.map(() => '?').join(', ')
  const accounts = await query(
    `DELETE FROM modelmount_spending WHERE caller IN (${list}) RETURNING caller`,
    callers,
  )
  await query(`DELETE FROM modelmount_funds WHERE caller IN (${list})`, callers)
  return accounts.length
}

const largerOf = (a: number | bigint, b: number | bigint): number | bigint => (a > b ? a : b)
const earlierOf = (a: string, b: string): string => (a < b ? a : b)

/** SQL that adds to the sum of a period. A charge for a past period leaves this sum unchanged. */
const addToPeriodSql = (period: string): string =>
  `${period}_spent = CASE
     WHEN excluded.${period} > modelmount_spending.${period} THEN excluded.${period}_spent
     WHEN excluded.${period} = modelmount_spending.${period} THEN modelmount_spending.${period}_spent + excluded.${period}_spent
     ELSE modelmount_spending.${period}_spent END,
   ${period} = CASE WHEN excluded.${period} > modelmount_spending.${period} THEN excluded.${period} ELSE modelmount_spending.${period} END`
