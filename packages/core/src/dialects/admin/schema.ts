/** What the admin API answers. It takes what `llm.keys` takes, under the same names. */
import { z } from 'zod'
import { KeySettings } from '../../accounts/keys/schema.ts'

const timestamp = z.iso.datetime()
const { name, tier, models, limits, spendingLimit, scopes } = KeySettings.shape

export const ApiKey = z.strictObject({
  id: z.string(),
  name,
  hint: z.string().describe('How its secret begins and ends.'),
  status: z.enum(['active', 'expired', 'revoked']),
  scopes: scopes.unwrap(),
  models,
  limits,
  tier,
  spendingLimit,
  createdAt: timestamp,
  expiresAt: timestamp.optional(),
  revokedAt: timestamp.optional(),
  lastUsedAt: timestamp.optional().describe('To the minute.'),
})

export const KeyWithSecret = z.strictObject({
  key: ApiKey,
  secret: z.string().describe('Told here, and never again.'),
})

export const LimitRequest = z.strictObject({
  id: z.string(),
  keyId: z.string(),
  limits: limits.unwrap(),
  reason: z.string(),
  status: z.enum(['pending', 'approved', 'refused']),
  createdAt: timestamp,
  decidedAt: timestamp.optional(),
})

export const LimitStatus = z.strictObject({
  name: z.enum(['requests', 'tokens']),
  limit: z.int().min(1).describe('For a minute; and how many may come at once.'),
  remaining: z.int().min(0).describe('How many may come now.'),
  resetMs: z.int().min(0).describe('Until as many may come as ever.'),
})

export const UsageBy = z.enum(['key', 'model', 'day'])
export const Day = z.iso.date()

const count = z.int().min(0)
export const UsageRow = z.strictObject({
  group: z.string().describe('The id of a key, a model or a day.'),
  name: z.string().optional().describe('Of a key.'),
  calls: count,
  unpricedCalls: count.describe('Of models without a price: they cost nothing.'),
  tokens: z.strictObject({ input: count, cachedInput: count, cacheWrite: count, output: count }),
  nanoUsd: z.string().regex(/^\d+$/).describe('Billionths of a dollar.'),
})

export const listOf = <Item extends z.ZodType>(item: Item) => z.strictObject({ data: z.array(item) })
