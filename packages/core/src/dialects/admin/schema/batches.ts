/** Schemas of batches. */
import { z } from 'zod'
import { count, timestamp } from './lists.ts'

const statuses = ['validating', 'in_progress', 'canceling', 'ended', 'failed'] as const

export const BatchStatus = z
  .enum(statuses, `Expected one of ${statuses.join(', ')}.`)
  .describe('failed: the file with the requests was invalid, and none of them has run.')

export const BatchFilters = z.object({ status: BatchStatus.optional() })

export const Batch = z.strictObject({
  id: z.string(),
  api: z.enum(['anthropic', 'openai']).describe('API whose format the requests and the results have.'),
  endpoint: z.string().describe('Path of the route that each request is for.'),
  status: BatchStatus,
  tenant: z.string().describe('Empty for the app itself.'),
  caller: z.string().optional().describe('Absent for the app itself.'),
  key: z
    .strictObject({ id: z.string(), name: z.string() })
    .optional()
    .describe('The API key that has created the batch, with the name that it had then.'),
  models: z
    .array(z.string())
    .optional()
    .describe('Models of the requests, up to 20. Absent until all requests are stored.'),
  counts: z.strictObject({
    processing: count.describe('Requests without a result.'),
    succeeded: count,
    errored: count,
    canceled: count,
    expired: count,
  }),
  createdAt: timestamp,
  expiresAt: timestamp.describe('Requests that have not begun by then do not run.'),
  startedAt: timestamp.optional(),
  cancelRequestedAt: timestamp.optional(),
  endedAt: timestamp.optional(),
  archivedAt: timestamp.optional().describe('Since when the results are deleted.'),
  metadata: z.record(z.string(), z.string()).optional(),
  problems: z
    .array(
      z.strictObject({
        message: z.string(),
        code: z.string(),
        line: count.optional().describe('Number of the line, from 1.'),
        param: z.string().optional().describe('The invalid field.'),
      }),
    )
    .optional()
    .describe('What is wrong with the file of a failed batch.'),
})
