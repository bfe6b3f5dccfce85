/** Schemas of usage and cost. */
import { z } from 'zod'
import { count, nanoUsd } from './lists.ts'

export const UsageBy = z.enum(['key', 'tenant', 'model', 'day'])
export const UsageOrder = z
  .enum(['group', 'cost'])
  .describe('`cost`: the most expensive rows first. There is no next page then. Default: `group`.')
export const UsageKey = z.string().describe('Id of a key or of another caller. Default: all.')
export const UsageModel = z.string().describe('Name of a model, as in a report by model. Default: all.')
export const Day = z.iso.date()

const kinds = z.strictObject({ input: count, cachedInput: count, cacheWrite: count, output: count })

export const UsageRow = z.strictObject({
  group: z
    .string()
    .describe('Id of a key, a tenant, a model, or a day. After a year, a month instead of a day.'),
  name: z.string().optional().describe('Name of the key.'),
  calls: count,
  unpricedCalls: count.describe('Calls that used tokens of a model without a price, and cost nothing.'),
  tokens: kinds,
  undeliveredTokens: count.describe('Output that was generated, but not read. It costs nothing.'),
  nanoUsd,
  batch: z
    .strictObject({ calls: count, tokens: kinds, nanoUsd })
    .describe('The part of these sums that requests of batches have used.'),
})
