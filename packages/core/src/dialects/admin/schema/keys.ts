/** Response schemas of keys. Requests are validated with the schemas of `llm.keys`. */
import { z } from 'zod'
import { KeySettings } from '../../../accounts/keys/schema.ts'
import { timestamp } from './lists.ts'

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
})

export const KeyWithSecret = z.strictObject({
  key: ApiKey,
  secret: z.string().describe('Cannot be read again.'),
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
  name: z.enum(['requests', 'tokens', 'inputTokens', 'outputTokens']),
  limit: z.int().min(1).describe('Maximum per window, also the size of the bucket.'),
  remaining: z.int().min(0).describe('Currently available.'),
  resetMs: z.int().min(0).describe('Time until the bucket is full, in ms.'),
  windowMs: z.int().min(1).optional().describe('Length of the window, in ms. Default: a minute.'),
})
