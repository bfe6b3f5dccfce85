/** Spending limits as texts. */
import type { SpendingLimit } from '../api/types.ts'
import { formatUsd, parseUsd } from '../format/money.ts'

export const periodNames = {
  day: 'per day',
  month: 'per month',
  lifetime: 'in total',
} as const satisfies Record<SpendingLimit['period'], string>

/** Such as `$5.00 per month`. */
export const describeSpendingLimit = ({ usd, period }: SpendingLimit): string =>
  `${formatUsd(parseUsd(`${usd}`) ?? 0n)} ${periodNames[period]}`
