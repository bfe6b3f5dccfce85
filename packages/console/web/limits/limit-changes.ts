/** What a request for higher limits changes. */
import type { Limits, SpendingLimit } from '../api/types.ts'
import { parseUsd } from '../format/money.ts'
import { formatCount } from '../format/numbers.ts'
import { endUserLimitNames, type LimitName, limitNames } from './limit-names.ts'
import { describeSpendingLimit } from './spending-text.ts'

/** Limits of a key, or limits that it asks for. */
export interface KeyLimits {
  readonly limits: Limits
  readonly spendingLimit?: SpendingLimit | undefined
}

/** A limit that was asked for, beside the one that applies. */
export interface LimitChange {
  readonly name: string
  readonly requested: string
  /** Undefined without a limit. */
  readonly current: string | undefined
  /** Whether the present limit is higher by now, and stays. */
  readonly isLower: boolean
}

/** @param current the limits of the key with those of its tier */
export function listChanges(requested: KeyLimits, current: KeyLimits): readonly LimitChange[] {
  const { limits, spendingLimit } = requested
  const change = (
    name: string,
    value: number | undefined,
    now: number | undefined,
  ): readonly LimitChange[] =>
    value === undefined
      ? []
      : [
          {
            ...{ name, requested: formatCount(value), isLower: now === undefined || value < now },
            current: now === undefined ? undefined : formatCount(now),
          },
        ]
  const now = current.limits
  return [
    ...(spendingLimit ? [changeOfSpending(spendingLimit, current.spendingLimit)] : []),
    ...(Object.keys(limitNames) as LimitName[]).flatMap((name) =>
      change(limitNames[name], limits[name], now[name]),
    ),
    ...endUserLimitNames.flatMap((name) =>
      change(`${limitNames[name]}, each end user`, limits.perEndUser?.[name], now.perEndUser?.[name]),
    ),
  ]
}

const changeOfSpending = (requested: SpendingLimit, current: SpendingLimit | undefined): LimitChange => ({
  name: 'Spending limit',
  requested: describeSpendingLimit(requested),
  current: current && describeSpendingLimit(current),
  isLower: !current || isLowerSpending(requested, current),
})

/** Whether a spending limit would refuse what another one allows. Months have up to 31 days. */
function isLowerSpending(requested: SpendingLimit, current: SpendingLimit): boolean {
  if (requested.period === 'lifetime' && current.period !== 'lifetime') return true
  const periods = requested.period === 'month' && current.period === 'day' ? 31n : 1n
  return nanoUsdOf(requested) < nanoUsdOf(current) * periods
}

const nanoUsdOf = ({ usd }: SpendingLimit): bigint => parseUsd(`${usd}`) ?? 0n

/** The limits that apply to a key: its own ones, else those of its tier. */
export const mergeLimits = (own: Limits | undefined, tier: Limits | undefined): Limits => ({
  ...tier,
  ...own,
})
