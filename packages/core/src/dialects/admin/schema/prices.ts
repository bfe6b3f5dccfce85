/** Schemas of prices. */
import { z } from 'zod'

const usd = z.number().min(0)

const PriceRow = z.strictObject({
  model: z.string().describe('Name of a model. `*` stands for all other models.'),
  inputPerMillionUsd: usd.describe('Dollars per million tokens.'),
  outputPerMillionUsd: usd,
  cachedInputPerMillionUsd: usd.optional().describe('Default: a tenth of inputPerMillionUsd.'),
  cacheWritePerMillionUsd: usd.optional().describe('Default: inputPerMillionUsd.'),
})

export const PriceReport = z.strictObject({
  data: z.array(PriceRow),
  unpricedModels: z
    .array(z.string())
    .describe('Models that keys with a spending limit cannot use, because they have no price.'),
})
