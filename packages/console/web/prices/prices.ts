/** Prices of models. */
import type { ResponseOf } from '../api/types.ts'
import { formatUsd } from '../format/money.ts'
import { includesModel, isSameModel } from '../llm/model-names.ts'

export type PriceReport = ResponseOf<'listPrices'>
export type Price = PriceReport['data'][number]

/** Returns undefined for a model without a price. */
export const priceOf = ({ data }: PriceReport, model: string): Price | undefined =>
  data.find((price) => isSameModel(price.model, model)) ?? data.find((price) => price.model === '*')

/** The models without a price among those that a key may use. @param models of the key. Empty for all models */
export const unpricedAmong = (
  { unpricedModels }: PriceReport,
  models: readonly string[],
): readonly string[] => unpricedModels.filter((name) => includesModel(models, name))

/** Input and output of a million tokens, such as `$1.00 in, $2.00 out`. */
export const formatPrice = ({ inputPerMillionUsd, outputPerMillionUsd }: Price): string =>
  inputPerMillionUsd === 0 && outputPerMillionUsd === 0
    ? 'Free'
    : `${formatRate(inputPerMillionUsd)} in, ${formatRate(outputPerMillionUsd)} out`

/** All rates, such as `$1.00 input, $2.00 output, $0.10 cached input`. */
export const describePrice = ({
  inputPerMillionUsd,
  outputPerMillionUsd,
  cachedInputPerMillionUsd = inputPerMillionUsd / 10,
  cacheWritePerMillionUsd = inputPerMillionUsd,
}: Price): string =>
  [
    `${formatRate(inputPerMillionUsd)} input`,
    `${formatRate(outputPerMillionUsd)} output`,
    `${formatRate(cachedInputPerMillionUsd)} from the cache`,
    ...(cacheWritePerMillionUsd === inputPerMillionUsd
      ? []
      : [`${formatRate(cacheWritePerMillionUsd)} to write to the cache`]),
  ].join(', ')

const formatRate = (usd: number): string => formatUsd(BigInt(Math.round(usd * 1e9)))

const shownAtMost = 5

/** Such as `a, b and c`. Long lists name the first ones. */
export function listNames(names: readonly string[]): string {
  const rest = names.length - shownAtMost
  const shown = rest > 1 ? [...names.slice(0, shownAtMost), `${rest} others`] : [...names]
  const last = shown.pop() ?? ''
  return shown.length === 0 ? last : `${shown.join(', ')} and ${last}`
}
