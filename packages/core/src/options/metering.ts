/** Checks the options for prices, limits and the storage of usage. */

import type { Tiers } from '../accounts/auth/caller.ts'
import { maxPricePerMillionUsd, type Price, type Prices } from '../accounts/prices/pricing.ts'
import type { SpendingWarningOptions } from '../accounts/usage/warnings.ts'
import { checkInferenceLimits, checkLimits } from '../limits/demand.ts'
import type { LimiterStore, Limits } from '../limits/limits.ts'
import { checkInteger, checkKeys, checkMethods, checkObject, describeValue } from './check.ts'

/**
 * Highest weight of a tier. The share of a tenant with the weight 1 must be long enough to load its saved state.
 */
const maxWeight = 10

const dayMs = 86_400_000

/** How long usage is stored. */
export interface UsageOptions {
  /**
   * How many days the row of each call is kept, from 1 to 36,525, or `'forever'`. Sums by day, key and model,
   * and the spending of callers, are never deleted.
   *
   * @default 90
   */
  readonly retentionDays?: number | 'forever' | undefined
}

export interface UnresolvedMeteringOptions {
  readonly prices?: Prices | undefined
  readonly tiers?: Tiers | undefined
  readonly modelLimits?: Readonly<Record<string, Limits>> | undefined
  readonly limiterStore?: LimiterStore | undefined
  readonly spendingWarnings?: SpendingWarningOptions | undefined
  readonly usage?: UsageOptions | undefined
}

export interface ResolvedMeteringOptions {
  readonly prices: Prices
  readonly tiers: Tiers | undefined
  readonly modelLimits: Readonly<Record<string, Limits>>
  readonly limiterStore: LimiterStore | undefined
  readonly warnings: SpendingWarningOptions
  /** `Infinity` if rows are never deleted. */
  readonly retentionMs: number
}

export function resolveMeteringOptions(options: UnresolvedMeteringOptions): ResolvedMeteringOptions {
  const { prices = {}, tiers, modelLimits = {}, limiterStore } = options
  const { spendingWarnings: warnings = {}, usage = {} } = options
  checkKeys('usage.', usage, ['retentionDays'])
  checkKeys('spendingWarnings.', warnings, ['thresholds', 'onWarning'])
  checkObject('modelLimits', modelLimits)
  for (const [model, limits] of Object.entries(modelLimits)) checkLimits(limits, `modelLimits['${model}'].`)
  checkMethods('limiterStore', limiterStore, ['open'])
  if (tiers !== undefined) checkTiers(tiers)
  checkPrices(prices)
  for (const threshold of warnings.thresholds ?? [])
    if (!(threshold > 0 && threshold <= 1))
      throw new TypeError(
        `Expected \`spendingWarnings.thresholds\` to be above 0 and at most 1, got ${describeValue(threshold)}`,
      )
  const { retentionDays = 90 } = usage
  if (retentionDays !== 'forever') checkInteger('usage.retentionDays', retentionDays, 1, 36_525)
  return {
    prices,
    tiers,
    modelLimits,
    limiterStore,
    warnings,
    retentionMs: retentionDays === 'forever' ? Number.POSITIVE_INFINITY : retentionDays * dayMs,
  }
}

/** Throws a `TypeError` that names the wrong option. */
export function checkTiers(tiers: Tiers): void {
  checkObject('tiers', tiers)
  for (const [name, tier] of Object.entries(tiers)) {
    checkObject(`tiers['${name}']`, tier)
    const { weight, ...limits } = tier
    checkInferenceLimits(limits, `tiers['${name}'].`)
    checkInteger(`tiers['${name}'].weight`, weight, 1, maxWeight)
  }
}

/** Throws a `TypeError` that names the wrong option. */
export function checkPrices(prices: Prices): void {
  checkObject('prices', prices)
  for (const [model, price] of Object.entries(prices)) checkPrice(model, price)
}

function checkPrice(model: string, price: Price): void {
  checkKeys(`prices['${model}'].`, price, [...priceNames])
  for (const name of priceNames) {
    const usd = price[name]
    const isOptional = name !== 'inputPerMillionUsd' && name !== 'outputPerMillionUsd'
    if (usd === undefined && isOptional) continue
    if (!(typeof usd === 'number' && usd >= 0 && usd <= maxPricePerMillionUsd))
      throw new TypeError(
        `Expected \`prices['${model}'].${name}\` to be a number of dollars from 0 to ${maxPricePerMillionUsd}, got ${describeValue(usd)}`,
      )
  }
}

const priceNames = [
  'inputPerMillionUsd',
  'outputPerMillionUsd',
  'cachedInputPerMillionUsd',
  'cacheWritePerMillionUsd',
] as const satisfies readonly (keyof Price)[]
