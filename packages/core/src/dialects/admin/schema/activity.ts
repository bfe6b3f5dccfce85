/** Schemas of what the app does now. */
import { z } from 'zod'
import { count, timestamp } from './lists.ts'

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

const RunningCall = CallNow.extend({
  process: z.strictObject({ id: z.string(), host: z.string(), pid: z.int() }),
  canCancel: z.boolean(),
})

export const RunningCallList = z.strictObject({
  data: z.array(RunningCall),
  isShared: z.boolean().describe('Whether these are the calls of all app processes. Otherwise, of this one.'),
})

export const CanceledCall = z.strictObject({
  id: z.string(),
  status: z.enum(['canceled', 'requested']).describe('requested: another app process ends the call soon.'),
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

const ReplicaNow = z.strictObject({
  engine: z.string().optional().describe('Name of the engine. Absent for the only engine of the app.'),
  url: z.string(),
  state: z
    .enum(['ready', 'starting', 'overloaded', 'ejected', 'draining'])
    .describe(
      'starting: gets fewer calls, since it has joined or returned. ejected: has failed, and gets calls only if all have.',
    ),
  runningCalls: count,
  outstandingTokens: amount.describe(
    'What its running calls have still to evaluate and to generate, as an estimate.',
  ),
  calls: count.describe('All that have gone there, also those that failed.'),
  failedCalls: count,
  inputTokens: count.describe('Of the prompts of ended calls.'),
  cachedTokens: count.describe('Those of inputTokens that the replica has found in its cache.'),
  ejections: count,
  lastFailure: z.strictObject({ kind: z.string(), at: timestamp }).optional(),
})

export const ActivityNow = z.strictObject({
  calls: z.array(CallNow).describe('The oldest ones, at most 1,000.'),
  callCount: count.describe('Number of all calls.'),
  queues: z.array(z.strictObject({ model: z.string(), waiting: count })),
  models: z.array(ModelNow),
  replicas: z.array(ReplicaNow).describe('The servers of fleets, as this process knows them.'),
})
