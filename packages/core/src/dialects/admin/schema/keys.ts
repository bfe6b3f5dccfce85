/** Response schemas of keys. Requests are validated with the schemas of `llm.keys`. */
import { z } from 'zod'
import { KeySettings } from '../../../accounts/keys/schema.ts'
import { nanoUsd, timestamp } from './lists.ts'

const { name, tenant, tier, models, limits, spendingLimit, scopes } = KeySettings.shape

export const ApiKey = z.strictObject({
  id: z.string(),
  name,
  tenant: tenant.unwrap().describe('Keys of one tenant share cached prompts and their part of the time.'),
  hint: z.string().describe('Beginning and end of the secret.'),
  status: z.enum(['active', 'expired', 'revoked']),
  scopes: scopes.unwrap(),
  models,
  limits,
  tier,
  spendingLimit,
  createdAt: timestamp,
  expiresAt: timestamp.optional(),
  revokedAt: timestamp.optional(),
  lastUsedAt: timestamp.optional().describe('Precise to the minute.'),
  previousSecretExpiresAt: timestamp
    .optional()
    .describe('Until when a secret from before the last rotation is valid. Absent if none is.'),
})

const Spending = z.strictObject({
  nanoUsd: nanoUsd.describe('Spent in the current period, in billionths of a dollar.'),
  limitNanoUsd: nanoUsd,
  period: z.enum(['day', 'month', 'lifetime']),
  resetsAt: timestamp.optional().describe('Start of the next period. Absent for a lifetime.'),
})

/** A key as an answer shows it, with what it has spent. */
export const ShownKey = ApiKey.extend({
  spending: Spending.optional().describe('Absent without a spending limit.'),
})

export const KeySearch = z.string().max(200).describe('Part of the name, the hint or the id of a key.')
export const KeyStatus = ApiKey.shape.status

export const Me = z.strictObject({
  caller: z.strictObject({ id: z.string(), tenant: z.string(), scopes: z.array(z.string()) }),
  key: ShownKey.optional().describe('Absent if the caller is not an API key.'),
  limits: limits.unwrap().describe('The limits that apply: those of the caller, else those of its tier.'),
})

export const TierRow = z.strictObject({
  name: z.string(),
  limits: limits.unwrap(),
  weight: z.int().min(1).describe("Share of a model's time, relative to other tenants."),
  keys: z.int().min(0).describe('Keys of this tier that are not revoked.'),
})

export const KeyWithSecret = z.strictObject({
  key: ApiKey,
  secret: z.string().describe('Cannot be read again.'),
})

export const LimitRequest = z.strictObject({
  id: z.string(),
  keyId: z.string(),
  keyName: z.string().describe('Current name of the key.'),
  limits: limits.unwrap().describe('Requested limits. The other ones do not change.'),
  spendingLimit,
  reason: z.string(),
  status: z.enum(['pending', 'approved', 'refused']),
  createdAt: timestamp,
  decidedAt: timestamp.optional(),
  note: z.string().optional().describe('Of the person who has decided.'),
  decidedBy: z.string().optional().describe('Id of the caller who has decided.'),
})

export const LimitStatus = z.strictObject({
  name: z.enum(['requests', 'tokens', 'inputTokens', 'outputTokens']),
  limit: z.int().min(1).describe('Maximum per window, also the size of the bucket.'),
  remaining: z.int().min(0).describe('Currently available.'),
  resetMs: z.int().min(0).describe('Time until the bucket is full, in ms.'),
  windowMs: z.int().min(1).optional().describe('Length of the window, in ms. Default: a minute.'),
})
