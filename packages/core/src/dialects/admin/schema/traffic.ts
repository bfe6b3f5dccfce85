/** Schemas of calls over time. */
import { z } from 'zod'
import { count, nanoUsd, timestamp } from './lists.ts'

export const TrafficInterval = z
  .enum(['hour', 'day'])
  .describe('Length of the intervals, in UTC. Default: hour.')
export const TrafficTime = z.iso.datetime({ offset: true })
export const TrafficBy = z
  .enum(['model', 'key'])
  .describe(
    'One row per interval and group. By key, the 100 keys and other callers with most calls, or fewer for more than 20 intervals.',
  )

export const TrafficFilters = z.object({
  interval: TrafficInterval.optional(),
  from: TrafficTime.optional(),
  to: TrafficTime.optional(),
  by: TrafficBy.optional(),
  key: z.string().optional(),
  model: z.string().optional(),
})

const milliseconds = z
  .strictObject({ p50: count, p95: count })
  .nullable()
  .describe('Percentiles in ms, at most 10 % off. null without a call that has this time.')

export const TrafficRow = z.strictObject({
  at: timestamp.describe('Beginning of the interval.'),
  group: z
    .string()
    .optional()
    .describe('Name of a model, or id of a key. Empty for models that do not exist, and for the app itself.'),
  name: z.string().optional().describe('Name of the key.'),
  calls: count.describe('Calls that ended in the interval, also failed and rejected ones.'),
  errors: count.describe('Calls that have failed or were rejected.'),
  inputTokens: count.describe('With cached ones.'),
  cachedInputTokens: count.describe('As `cachedInput` of the usage: read from any prompt cache.'),
  outputTokens: count,
  nanoUsd,
  firstTokenMs: milliseconds,
  durationMs: milliseconds,
})
