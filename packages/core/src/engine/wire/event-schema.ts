/** Schema of `GenerateEvent` in messages. */
import { z } from 'zod'

const number = z.number()
/** JSON has no infinite numbers. The logarithm of an impossible token is null in a message. */
const logprob = number.nullable().transform((value) => value ?? Number.NEGATIVE_INFINITY)
const TokenLogprob = z.object({ id: z.int(), text: z.string(), bytes: z.array(z.int()), logprob })
const SampledToken = TokenLogprob.extend({ top: z.array(TokenLogprob) })
const PromptToken = SampledToken.extend({ logprob: number.nullable() })
const promptUsage = {
  inputTokens: z.int(),
  reusedTokens: z.int(),
  cacheReadTokens: z.int(),
  cacheWriteTokens: z.object({ '5m': z.int(), '1h': z.int() }),
}
const OutputTimings = z.object({ promptMs: number, generateMs: number })
export const EventSchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('start'),
    model: z.string(),
    ...promptUsage,
    fingerprint: z.string(),
    divergence: z.object({ tokens: z.int(), behind: z.string() }).optional(),
  }),
  z.object({ type: z.literal('prompt'), tokens: z.array(PromptToken) }),
  z.object({
    type: z.enum(['text', 'reasoning']),
    text: z.string(),
    tokens: z.int(),
    logprobs: z.array(SampledToken).optional(),
    timings: OutputTimings.optional(),
  }),
  z.object({ type: z.literal('tool-call'), index: z.int(), id: z.string(), name: z.string() }),
  z.object({
    type: z.literal('tool-arguments'),
    index: z.int(),
    json: z.string(),
    tokens: z.int(),
    timings: OutputTimings.optional(),
  }),
  // The app itself creates the events of the load.
  z.object({
    type: z.literal('progress'),
    phase: z.literal('prompt'),
    total: z.int(),
    cached: z.int(),
    processed: z.int(),
    ms: number,
  }),
  z.object({
    type: z.literal('end'),
    finishReason: z.enum(['stop', 'length', 'context', 'tool-calls']),
    incompleteCalls: z.array(z.int()).optional(),
    stopSequence: z.string().optional(),
    usage: z.object({ ...promptUsage, outputTokens: z.int(), isEstimated: z.boolean().optional() }),
    timings: OutputTimings.extend({ loadMs: number }),
    tokens: z.array(z.int()).optional(),
  }),
])
