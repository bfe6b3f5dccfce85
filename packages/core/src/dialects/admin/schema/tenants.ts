/** Schemas of the deletion of a tenant. */
import { z } from 'zod'
import { count } from './lists.ts'

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
