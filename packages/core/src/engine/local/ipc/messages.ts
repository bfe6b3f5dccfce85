/** Messages between apps and model processes. Both sides validate the messages that they receive. */
import { z } from 'zod'
import type { GenerateEvent } from '../../events.ts'
import { EventSchema } from '../../wire/event-schema.ts'
import { tokenIds } from '../../wire/request-schema.ts'
import { WireError } from '../../wire/wire-error.ts'

const CallType = z.enum([
  'generate',
  'count',
  'count-cached',
  'render',
  'embed',
  'rerank',
  'tokenize',
  'detokenize',
  'pieces',
  'forget',
])
/** The call `forget` deletes the KV states of its tenant. Its result is their number. */
export type CallType = z.output<typeof CallType>

/** Messages to a model process. All of them come from apps, except `yield`. */
export const ToProcess = z.discriminatedUnion('type', [
  z.object({
    type: CallType,
    id: z.int(),
    request: z.unknown(),
    /** Calls of one tenant share cached prompts, and their part of the model's time. */
    tenant: z.string(),
    /** Part of the model's time that the tenant gets, relative to other tenants. */
    weight: z.number().positive(),
    /** Whether the call pauses while the process has foreground calls. */
    background: z.boolean(),
    /**
     * The call pauses while the app has not pulled at least this many of its tokens. If absent, it never
     * pauses.
     */
    readAheadTokens: z.int().min(1).optional(),
    /**
     * Id of a call of this connection that counted the same prompt. If the process still has the tokens of
     * that call, it uses them.
     */
    countedBy: z.int().optional(),
  }),
  z.object({ type: z.literal('cancel'), id: z.int() }),
  /** The app has pulled more tokens of a call. */
  z.object({ type: z.literal('consumed'), id: z.int(), tokens: z.int().min(0) }),
  z.object({ type: z.literal('ping') }),
  /** Asks for messages about the progress of the load. */
  z.object({ type: z.literal('watchLoad') }),
  /**
   * The app no longer needs the model. The process closes the connection, and exits if it has no other
   * connection.
   */
  z.object({ type: z.literal('release') }),
  /**
   * Sent by another model process, which needs memory. If the receiver is idle, it exits, else it closes this
   * connection.
   */
  z.object({ type: z.literal('yield') }),
])
export type ToProcess = z.output<typeof ToProcess>

/** One vector. Each vector has a separate message, since a message with thousands would be too large. */
const VectorResult = z.object({
  /** Position of the input in the request. */
  index: z.int().min(0),
  /** Encoded by `encodeVector`. A rerank score is a vector of one number. */
  vector: z.string(),
  inputTokens: z.int().min(0),
})
export type VectorResult = z.output<typeof VectorResult>

/** The result of a call, or a piece of it: a token count, a text, token ids, texts and bytes of tokens, or a vector. */
const CallResult = z.union([
  z.number(),
  z.string(),
  tokenIds,
  z.array(z.union([z.string(), z.array(z.int()).readonly()])).readonly(),
  VectorResult,
])
export type CallResult = z.output<typeof CallResult>

/** `unsupported`: an encoder with neither pooling for embeddings nor a ranking head. */
const ModelTask = z.enum(['generate', 'embed', 'rerank', 'unsupported'])
export type ModelTask = z.output<typeof ModelTask>

const Footprint = z.object({
  contextSize: z.int(),
  /** Memory for weights and context, in bytes. */
  sizeBytes: z.number().min(0),
  /** Part of `sizeBytes` on a graphics card. */
  gpuBytes: z.number().min(0),
  /** Layers of the model on a graphics card. */
  gpuLayers: z.int().min(0),
  /** Deviations from the requested settings, for the app's log. */
  notes: z.array(z.string()).readonly(),
  /** Estimated duration of the longest decode or prefill step, in milliseconds. */
  stepMs: z.number().min(0),
  task: ModelTask,
})
export type Footprint = z.output<typeof Footprint>

const count = z.int().min(0)

/** Saved states that were dropped since the start of the process. */
const Evicted = z.object({ states: count, bytes: count })

/** Absent until the model is loaded. */
const ProcessActivity = z.object({
  activeSequences: count,
  waitingSequences: count,
  memoryBytes: count,
  cachedStates: count,
  cachedStateBytes: count,
  evicted: z.object({ expired: Evicted, memory: Evicted, deleted: Evicted }),
})
export type ProcessActivity = z.output<typeof ProcessActivity>

/** Messages that the model process sends. */
export const FromProcess = z.discriminatedUnion('type', [
  Footprint.extend({ type: z.literal('loaded') }),
  z.object({ type: z.literal('failed'), error: WireError }),
  /** Loaded part of the weights, for apps that have sent `watchLoad`. */
  z.object({ type: z.literal('loading'), fraction: z.number().min(0).max(1) }),
  /** The load waits until other processes free memory. */
  z.object({ type: z.literal('waiting') }),
  z.object({ type: z.literal('events'), events: z.array(z.object({ id: z.int(), event: EventSchema })) }),
  /** The result of a call without events, or a piece of it. */
  z.object({ type: z.literal('result'), id: z.int(), value: CallResult }),
  /** A call has completed, failed or been cancelled. */
  z.object({ type: z.literal('done'), id: z.int(), error: WireError.optional() }),
  /**
   * `steps` counts the progress of all calls. The watchdog assumes a hang if `steps` stops growing in a call.
   */
  z.object({ type: z.literal('pong'), steps: z.int(), activity: ProcessActivity.optional() }),
  /** A problem that fails no call, for the app's log. */
  z.object({ type: z.literal('warning'), text: z.string() }),
  /** The process exits to free memory for another model. The app does not count this as a failure. */
  z.object({ type: z.literal('leaving') }),
])
export type FromProcess =
  | Exclude<z.output<typeof FromProcess>, { readonly type: 'events' }>
  | {
      readonly type: 'events'
      readonly events: readonly { readonly id: number; readonly event: GenerateEvent }[]
    }
