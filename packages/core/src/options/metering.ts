/** Prices, tiers, limits, and who waits. */

import { maxPricePerMillionUsd, type Price, type Prices } from '../accounts/usage/pricing.ts'
import type { SpendingWarningOptions } from '../accounts/usage/warnings.ts'
import { checkLimits } from '../limits/demand.ts'
import type { Limits } from '../limits/limits.ts'
import { checkInteger, checkKeys, describeValue } from './check.ts'

export interface LimitOptions {
  /** By model, of all its callers together. */
  readonly models?: Readonly<Record<string, Limits>> | undefined

  /**
   * How many calls wait for each model, one of each caller in turn; of one too many, the caller with most of them hears it.
   *
   * @default 448 where callers are told apart; else what the engine lets wait
   */
  readonly queue?: number | undefined
}

/** So many calls are inside of the engine, which knows who of them is next; all others wait outside. */
const permits = 64
/** Together as many as the engine takes. */
const defaultMaxQueued = 448

const dayMs = 86_400_000

export interface UsageOptions {
  /**
   * So many days the ledger keeps the row of each call, or `'forever'`. Sums by day, key and model stay, and so does what was spent.
   *
   * @default 90
   */
  readonly retentionDays?: number | 'forever' | undefined
}

interface UnresolvedMeteringOptions {
  readonly prices?: Prices | undefined
  readonly tiers?: Readonly<Record<string, Limits>> | undefined
  readonly limits?: LimitOptions | undefined
  readonly spendingWarnings?: SpendingWarningOptions | undefined
  readonly usage?: UsageOptions | undefined
  readonly auth?: string | undefined
}

export interface ResolvedMeteringOptions {
  readonly prices: Prices
  readonly tiers: Readonly<Record<string, Limits>>
  readonly modelLimits: Readonly<Record<string, Limits>>
  readonly queue: { readonly permits: number; readonly maxQueued: number } | undefined
  readonly warnings: SpendingWarningOptions
  /** Infinite: for ever. */
  readonly retentionMs: number
}

export function resolveMeteringOptions(options: UnresolvedMeteringOptions): ResolvedMeteringOptions {
  const {
    prices = {},
    tiers = {},
    limits = {},
    spendingWarnings: warnings = {},
    usage = {},
    auth = 'anonymous',
  } = options
  checkKeys('limits.', limits, ['models', 'queue'])
  checkKeys('usage.', usage, ['retentionDays'])
  checkKeys('spendingWarnings.', warnings, ['thresholds', 'onWarning'])
  const { models: modelLimits = {}, queue } = limits
  for (const one of [...Object.values(tiers), ...Object.values(modelLimits)]) checkLimits(one)
  for (const [model, price] of Object.entries(prices)) checkPrice(model, price)
  for (const threshold of warnings.thresholds ?? [])
    if (!(threshold > 0 && threshold <= 1))
      throw new TypeError(
        `Expected \`spendingWarnings.thresholds\` to be above 0 and at most 1, got ${describeValue(threshold)}`,
      )
  checkInteger('limits.queue', queue, 0, 1e6)
  const { retentionDays = 90 } = usage
  if (retentionDays !== 'forever') checkInteger('usage.retentionDays', retentionDays, 1, 36_525)
  const isQueued = queue !== undefined || auth !== 'anonymous'
  return {
    prices,
    tiers,
    modelLimits,
    queue: isQueued ? { permits, maxQueued: queue ?? defaultMaxQueued } : undefined,
    warnings,
    retentionMs: retentionDays === 'forever' ? Number.POSITIVE_INFINITY : retentionDays * dayMs,
  }
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
