/** Response schemas of the admin API. Requests are validated with the schemas of `llm.keys`. */
import { z } from 'zod'
import { KeySettings } from '../../accounts/keys/schema.ts'
import { maxPageSize } from '../../accounts/page.ts'

const timestamp = z.iso.datetime()
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

export const UsageBy = z.enum(['key', 'tenant', 'model', 'day'])
export const Day = z.iso.date()

const count = z.int().min(0)

export const TenantDeletion = z.strictObject({
  usage: z
    .enum(['delete', 'anonymize'])
    .optional()
    .describe('anonymize keeps the sums per day and model without the tenant. Default: delete.'),
})

export const DeletedTenant = z.strictObject({
  tenant: z.string(),
  revokedKeys: count.describe('Keys that were valid until the deletion.'),
  endedCalls: count.describe('Calls that ran in this app.'),
  promptStates: count.describe('Prompt states in model processes of this app.'),
  deleted: z.record(z.string(), count).describe('Stored entries, by kind, such as keys.'),
})
const kinds = z.strictObject({ input: count, cachedInput: count, cacheWrite: count, output: count })
const nanoUsd = z.string().regex(/^\d+$/).describe('Billionths of a dollar.')
export const UsageRow = z.strictObject({
  group: z
    .string()
    .describe('Id of a key, a tenant, a model, or a day. After a year, a month instead of a day.'),
  name: z.string().optional().describe('Name of the key.'),
  calls: count,
  unpricedCalls: count.describe('Calls of models without a price, which cost nothing.'),
  tokens: kinds,
  undeliveredTokens: count.describe('Output that was generated, but not read. It costs nothing.'),
  nanoUsd,
  batch: z
    .strictObject({ calls: count, tokens: kinds, nanoUsd })
    .describe('The part of these sums that requests of batches have used.'),
})

export const Limit = z
  .int()
  .min(1)
  .max(maxPageSize)
  .describe(`Maximum number of entries. Default: ${maxPageSize}.`)
export const After = z.string().describe('`next` of the previous page. Default: the first page.')

export const pageOf = <Item extends z.ZodType>(item: Item) =>
  z.strictObject({
    data: z.array(item),
    next: z.string().optional().describe('Value of `after` for the next page. Absent in the last page.'),
  })

export const listOf = <Item extends z.ZodType>(item: Item) => z.strictObject({ data: z.array(item) })

const amount = z.number().min(0)

const CallNow = z.strictObject({
  id: z.string().describe('As in the usage of the call.'),
  kind: z.string().describe('generate, embed, rerank, count, render, tokenize, detokenize, load or unload.'),
  dialect: z.string().optional().describe('API of the call. Absent for calls of the app.'),
  route: z.string().optional(),
  requestId: z.string().optional(),
  model: z.string(),
  isKnownModel: z.boolean(),
  alias: z.string().optional(),
  caller: z.string().optional().describe('Absent for the app itself.'),
  key: z.string().optional().describe('Id of the key of the caller.'),
  tenant: z.string(),
  isBackground: z.boolean(),
  isBatchItem: z.boolean(),
  phase: z.enum(['queued', 'loading', 'prompt', 'decoding']).describe('What the call waits for.'),
  startedAt: timestamp,
  ageMs: amount,
  inputTokens: count.describe('0 while unknown.'),
  reusedTokens: count,
  outputTokens: count.describe('Generated so far.'),
  tokensPerSecond: amount.describe('Output since the first token.'),
})

const ModelNow = z.strictObject({
  name: z.string(),
  digest: z.string().optional(),
  state: z.enum(['loading', 'ready']),
  processId: z.int().optional(),
  contextSize: count,
  sizeBytes: count.describe('0 while unknown.'),
  gpuBytes: count.describe('Part of sizeBytes on a graphics card.'),
  gpuLayers: count.optional(),
  notes: z.array(z.string()).optional().describe('Settings that could not be met.'),
  expiresAt: z.union([timestamp, z.literal('never')]),
  activity: z
    .strictObject({
      activeSequences: count,
      waitingSequences: count,
      memoryBytes: count.describe('Resident memory of the model process.'),
      cachedStates: count,
      cachedStateBytes: count,
      reportedAt: timestamp,
    })
    .optional()
    .describe('As the model process has reported it last.'),
})

export const ActivityNow = z.strictObject({
  calls: z.array(CallNow).describe('The oldest ones, at most 1,000.'),
  callCount: count.describe('Number of all calls.'),
  queues: z.array(z.strictObject({ model: z.string(), waiting: count })),
  models: z.array(ModelNow),
})
