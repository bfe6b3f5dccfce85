/** Messages between an app and a model process. Both sides validate the messages that they receive. */
import { z } from 'zod'
import type { GenerateEvent } from '../../events.ts'
import { EventSchema } from './event-schema.ts'
import { tokenIds } from './request-schema.ts'
import { WireError } from './wire-error.ts'

const CallType = z.enum(['generate', 'count', 'render', 'embed', 'rerank', 'tokenize', 'detokenize'])
export type CallType = z.output<typeof CallType>

/** Messages that the app sends. */
export const ToProcess = z.discriminatedUnion('type', [
  z.object({
    type: CallType,
    id: z.int(),
    request: z.unknown(),
    /** Cache partition of the caller. */
    tenant: z.string(),
    /** Whether the call pauses while the process has foreground calls. */
    background: z.boolean(),
    /** Number of unread tokens at which the call pauses. Absent: no limit. */
    readAheadTokens: z.int().min(1).optional(),
  }),
  z.object({ type: z.literal('cancel'), id: z.int() }),
  /** The reader of a call has consumed more tokens. */
  z.object({ type: z.literal('consumed'), id: z.int(), tokens: z.int().min(0) }),
  z.object({ type: z.literal('ping') }),
  /**
   * The app no longer needs the model. The process closes the connection. It exits after the last connection.
   */
  z.object({ type: z.literal('release') }),
  /** Another process needs memory. An idle process then exits. */
  z.object({ type: z.literal('yield') }),
])
export type ToProcess = z.output<typeof ToProcess>

/** One vector. Each vector has its own message, since thousands in one message would be too large. */
const VectorResult = z.object({
  /** Position of the input in the request. */
  index: z.int().min(0),
  /** Encoded by `encodeVector`. A rerank score is a vector of one number. */
  vector: z.string(),
  inputTokens: z.int().min(0),
})
export type VectorResult = z.output<typeof VectorResult>

/** A token count, a text or a piece of it, a piece of token ids, or a vector. */
const CallResult = z.union([z.number(), z.string(), tokenIds, VectorResult])
export type CallResult = z.output<typeof CallResult>

const Footprint = z.object({
  contextSize: z.int(),
  /** Memory for weights and context, in bytes. */
  sizeBytes: z.number().min(0),
  /** Part of `sizeBytes` on a graphics card. */
  gpuBytes: z.number().min(0),
  /** Deviations from the requested settings, for the app's log. */
  notes: z.array(z.string()).readonly(),
  /** Slowest step measured at load, in milliseconds. */
  stepMs: z.number().min(0),
})
export type Footprint = z.output<typeof Footprint>

/** Messages that the model process sends. */
export const FromProcess = z.discriminatedUnion('type', [
  Footprint.extend({ type: z.literal('loaded') }),
  z.object({ type: z.literal('failed'), error: WireError }),
  /** The load waits until other processes free memory. */
  z.object({ type: z.literal('waiting') }),
  z.object({ type: z.literal('events'), events: z.array(z.object({ id: z.int(), event: EventSchema })) }),
  /** Result of a call without events, or a piece of the result. */
  z.object({ type: z.literal('result'), id: z.int(), value: CallResult }),
  /** A call has completed, failed or been cancelled. */
  z.object({ type: z.literal('done'), id: z.int(), error: WireError.optional() }),
  /** `steps` grows with every step of any call. The watchdog reads it as progress. */
  z.object({ type: z.literal('pong'), steps: z.int() }),
  /** The process exits to free memory for another model. The app does not count this as a failure. */
  z.object({ type: z.literal('leaving') }),
])
export type FromProcess =
  | Exclude<z.output<typeof FromProcess>, { readonly type: 'events' }>
  | {
      readonly type: 'events'
      readonly events: readonly { readonly id: number; readonly event: GenerateEvent }[]
    }
