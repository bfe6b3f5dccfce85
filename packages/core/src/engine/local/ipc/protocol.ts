/** What the app and a model process say to each other, validated on both sides like any input. */
import { z } from 'zod'
import {
  formatFieldPath,
  invalidRequest,
  LlmError,
  type LlmErrorCode,
  type LlmErrorDetails,
} from '../../../errors.ts'
import type { EmbedRequest, RerankRequest } from '../../embeddings.ts'
import type { GenerateEvent } from '../../events.ts'
import {
  areTokens,
  callableTools,
  type GenerateRequest,
  lifetimesOf,
  limits,
  measureTextLength,
} from '../../request.ts'
import type { DetokenizeRequest, TokenizeRequest } from '../../tokens.ts'

/** Raised with each change after which an older side would misunderstand a newer one: their processes are then not shared. */
export const protocolVersion = 8

/** What is loaded, and how. */
export const LoadConfig = z.object({
  modelPath: z.string(),
  modelName: z.string(),
  /** Identifies weights and settings in answers. */
  fingerprint: z.string(),
  threads: z.int().min(1),
  /** Whether fewer may be taken, where answers are faster with fewer. */
  tuneThreads: z.boolean(),
  /** At most this; less where the model was trained for less. */
  contextSize: z.int().min(1).max(limits.context),
  /** How many answers side by side, where there is memory for them. */
  parallel: z.int().min(1).max(256),
  gpuLayers: z.union([z.int().min(0), z.enum(['auto', 'max'])]),
  /** Absent: where the model and the machine can. */
  flashAttention: z.boolean().optional(),
  /** The library takes others, too, and crashes with some of them. */
  kvCacheType: z.enum(['f16', 'q8_0', 'q4_0']),
  /** The most that states of prompts take; absent: what there is room for. */
  promptCacheBytes: z.int().min(0).optional(),
  /** LoRA, in force for every answer. */
  adapters: z
    .array(z.object({ path: z.string(), scale: z.number(), sizeBytes: z.number().min(0) }))
    .optional(),
})
export type LoadConfig = z.output<typeof LoadConfig>

/** How a model process is started: its one argument, as JSON. */
export const ProcessConfig = LoadConfig.extend({
  /** Where it meets the apps, and under which name. */
  runtimeDir: z.string(),
  name: z.string(),
  /** Its private folder; removed at exit. */
  folder: z.string(),
})
export type ProcessConfig = z.output<typeof ProcessConfig>

/** What a process writes of itself beside its socket. */
export const ProcessRecord = z.object({
  processId: z.int().min(1),
  /** Of process ids: in another one they are other processes. */
  namespace: z.string(),
  folder: z.string(),
  /** `waiting`: for memory that others have. */
  state: z.enum(['waiting', 'loading', 'idle', 'busy']),
  /** Of the last change of state, in milliseconds since 1970. */
  since: z.number(),
  /** Memory that the machine may still count as free: weights that are read from the file whenever they are needed. */
  reservedBytes: z.number().min(0),
  /** Memory that the machine has again when this process leaves; the first version did not say it. */
  sizeBytes: z.number().min(0).default(0),
})
export type ProcessRecord = z.output<typeof ProcessRecord>

/** With what a process leaves that finds another one under its name. */
export const nameTakenExitCode = 10

const LoadOptions = z.object({
  contextSize: z.int().min(16).max(limits.context).optional(),
  keepAlive: z.union([z.number().min(0), z.literal('forever')]).optional(),
})

/** Half a character is none in UTF-8: what a tokenizer makes of it is anybody's guess. */
const wellFormed = (value: string): string => value.toWellFormed()
const number = z.number()
const symmetricRange = (limit: number) => number.min(-limit).max(limit)
const Sampling = z.object({
  temperature: number
    .min(0)
    .max(limits.temperature)
    // Logits divided by so little are infinite, and the draw is noise.
    .transform((value) => (value < 1e-6 ? 0 : value))
    .optional(),
  topP: number.min(0).max(1).optional(),
  topK: z.int().min(0).max(limits.int32).optional(),
  minP: number.min(0).max(1).optional(),
  seed: z.union([z.int(), z.literal('random')]).optional(),
  repeatPenalty: number.min(limits.repeatPenalty.min).max(limits.repeatPenalty.max).optional(),
  repeatLastN: z.int().min(-1).max(limits.int32).optional(),
  presencePenalty: symmetricRange(limits.penalty).optional(),
  frequencyPenalty: symmetricRange(limits.penalty).optional(),
  logitBias: z
    .array(z.tuple([z.int().min(0).max(limits.int32), symmetricRange(limits.bias)]))
    .max(limits.biases)
    .optional(),
  dry: z
    .object({
      strength: number.min(0).max(limits.dry.strength),
      base: number.min(1).max(limits.dry.base).optional(),
      allowedLength: z.int().min(1).max(limits.int32).optional(),
      lastN: z.int().min(-1).max(limits.int32).optional(),
      breakers: z
        .array(z.string().min(1).max(limits.breakerLength).transform(wellFormed))
        .max(limits.breakers)
        .optional(),
    })
    .optional(),
  xtc: z.object({ probability: number.min(0).max(1), threshold: number.min(0).max(1) }).optional(),
  ignoreEos: z.boolean().optional(),
  minTokens: z.int().min(0).max(limits.int32).optional(),
})

const text = z.string().transform(wellFormed)

const cache = z.enum(['5m', '1h']).optional()
const TextPart = z.object({ type: z.enum(['text', 'reasoning']), text, cache })
const Part = z.discriminatedUnion('type', [
  TextPart,
  z.object({
    type: z.literal('tool-call'),
    id: text,
    name: text,
    arguments: text,
    cache,
  }),
  z.object({
    type: z.literal('tool-result'),
    id: text.optional(),
    name: text.optional(),
    content: z.array(TextPart).max(limits.parts),
    isError: z.boolean().optional(),
    cache,
  }),
])
const Tool = z.object({
  cache,
  name: z.string().min(1).max(limits.toolNameLength).transform(wellFormed),
  description: text.optional(),
  parameters: z.record(z.string(), z.unknown()),
  strict: z.boolean().optional(),
})

const Messages = z
  .array(
    z.object({
      role: z.string().min(1).max(limits.roleLength).transform(wellFormed),
      content: z.array(Part).max(limits.parts),
    }),
  )
  .max(limits.messages)
/** In Go's template language. */
const Template = z.string().max(limits.templateLength).transform(wellFormed)

const ChatInput = z
  .object({
    kind: z.literal('chat'),
    messages: Messages.min(1),
    tools: z.array(Tool).max(limits.tools).optional(),
    toolChoice: z
      .object({
        mode: z.enum(['auto', 'none', 'required']),
        names: z.array(text).max(limits.tools).optional(),
        parallel: z.literal(false).optional(),
      })
      .optional(),
    template: Template.optional(),
    templateOptions: z.record(z.string(), z.unknown()).optional(),
  })
  .refine(({ tools = [] }) => new Set(tools.map(({ name }) => name)).size === tools.length, {
    path: ['tools'],
    error: 'has a name twice.',
  })
  .refine(
    ({ tools = [], toolChoice }) =>
      toolChoice?.names?.every((chosen) => tools.some(({ name }) => name === chosen)) ?? true,
    { path: ['toolChoice', 'names'], error: 'has a name that no tool has.' },
  )
  .refine((input) => lifetimesOf(input as GenerateRequest['input']).length <= limits.breakpoints, {
    path: ['messages'],
    error: `has more than ${limits.breakpoints} breakpoints, with the tools.`,
  })
  .refine(
    (input) =>
      input.toolChoice?.mode !== 'required' ||
      callableTools(input as Extract<GenerateRequest['input'], { kind: 'chat' }>).length > 0,
    {
      path: ['toolChoice', 'mode'],
      error: 'a tool must be called, and there is none.',
    },
  )
const TextInput = z.object({
  kind: z.literal('text'),
  prompt: z
    .array(z.union([text, z.custom<readonly number[]>(areTokens)], 'expected text or token ids.'))
    .max(limits.parts),
  system: text.optional(),
  messages: Messages.optional(),
  template: z.union([z.literal(false), Template]).optional(),
  templateOptions: z.record(z.string(), z.unknown()).optional(),
})

const InfillInput = z.object({
  kind: z.literal('infill'),
  prefix: text,
  suffix: text,
  template: Template.optional(),
})

const Format = z.discriminatedUnion('type', [
  z.object({ type: z.literal('json') }),
  z.object({
    type: z.literal('json-schema'),
    schema: z
      .union([z.boolean(), z.record(z.string(), z.unknown())])
      .refine(
        (schema) => jsonLength(schema) <= limits.schemaLength,
        `is longer than ${limits.schemaLength}.`,
      ),
  }),
  z.object({ type: z.literal('grammar'), source: z.string().min(1).max(limits.grammarLength) }),
])

/** Infinite where it is none. */
function jsonLength(value: unknown): number {
  try {
    return JSON.stringify(value).length
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

/** The gate to the native code: whoever calls, in a dialect or in process, is held to this. */
const Request = z
  .object({
    model: z.string(),
    input: z.discriminatedUnion('kind', [ChatInput, TextInput, InfillInput]),
    maxTokens: z.int().min(0).optional(),
    stop: z
      .array(
        z
          .string()
          .min(1)
          .max(limits.stopLength)
          .refine((text) => text.isWellFormed(), 'has half a character, a lone surrogate.'),
      )
      .max(limits.stops)
      .optional(),
    sampling: Sampling.optional(),
    reasoning: z.union([z.boolean(), z.literal('auto')]).optional(),
    format: Format.optional(),
    logprobs: z.int().min(0).max(limits.logprobs).optional(),
    promptLogprobs: z.literal(true).optional(),
    overflow: z.enum(['error', 'truncate']).optional(),
    load: LoadOptions.optional(),
    returnTokens: z.literal(true).optional(),
  })
  .refine(({ format, input }) => !format || input.kind !== 'chat' || input.toolChoice?.mode !== 'required', {
    path: ['format'],
    error: 'nothing is said where a call is forced.',
  })
  .refine(({ logprobs, promptLogprobs }) => !promptLogprobs || logprobs !== undefined, {
    path: ['promptLogprobs'],
    error: "it is only taken together with 'logprobs'.",
  })

const tokenIds = z.custom<readonly number[]>(areTokens, 'expected token ids.')
const isNonEmpty = ({ length }: { readonly length: number }): boolean => length > 0
const nonEmptyText = text.refine(isNonEmpty, 'is empty.')
const embedInput = z.union([text, tokenIds], 'expected text or token ids.').refine(isNonEmpty, 'is empty.')
const modelFields = { model: z.string(), load: LoadOptions.optional() }
const overflow = z.enum(['error', 'truncate']).optional()

const Embed = z.object({
  ...modelFields,
  inputs: z.array(embedInput).max(limits.inputs),
  overflow,
  dimensions: z.int().min(1).max(limits.int32).optional(),
})
const Rerank = z.object({
  ...modelFields,
  query: nonEmptyText,
  documents: z.array(nonEmptyText).max(limits.inputs),
  overflow,
})
const flag = z.boolean().optional()
const Tokenize = z.object({ ...modelFields, text, addSpecial: flag, parseSpecial: flag })
const Detokenize = z.object({ ...modelFields, tokens: tokenIds })

/** What a model is asked for. */
const CallType = z.enum(['generate', 'count', 'render', 'embed', 'rerank', 'tokenize', 'detokenize'])
export type CallType = z.output<typeof CallType>

/** From the app. */
export const ToProcess = z.discriminatedUnion('type', [
  z.object({
    type: CallType,
    id: z.int(),
    request: z.unknown(),
    /** Whose call it is: what the model has read for one is not used for another. */
    tenant: z.string(),
    /** Nobody waits for it. */
    background: z.boolean(),
    /** So many tokens at most are said before its reader has read them; absent: all. */
    readAheadTokens: z.int().min(1).optional(),
  }),
  z.object({ type: z.literal('cancel'), id: z.int() }),
  /** So many more tokens were read. */
  z.object({ type: z.literal('read'), id: z.int(), tokens: z.int().min(0) }),
  z.object({ type: z.literal('ping') }),
  /** This app needs the model no more. The connection ends, and so does the process if it was the last. */
  z.object({ type: z.literal('release') }),
  /** Memory is needed: the process ends unless somebody is being answered. */
  z.object({ type: z.literal('yield') }),
])
export type ToProcess = z.output<typeof ToProcess>

const TokenLogprob = z.object({ id: z.int(), text: z.string(), bytes: z.array(z.int()), logprob: number })
const SampledToken = TokenLogprob.extend({ top: z.array(TokenLogprob) })
const PromptToken = SampledToken.extend({ logprob: number.nullable() })
const promptUsage = {
  inputTokens: z.int(),
  reusedTokens: z.int(),
  cacheReadTokens: z.int(),
  cacheWriteTokens: z.object({ '5m': z.int(), '1h': z.int() }),
}
const Event = z.discriminatedUnion('type', [
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
  }),
  z.object({ type: z.literal('tool-call'), index: z.int(), id: z.string(), name: z.string() }),
  z.object({ type: z.literal('tool-arguments'), index: z.int(), json: z.string(), tokens: z.int() }),
  z.object({
    type: z.literal('end'),
    finishReason: z.enum(['stop', 'length', 'context', 'tool-calls']),
    incompleteCalls: z.array(z.int()).optional(),
    stopSequence: z.string().optional(),
    usage: z.object({ ...promptUsage, outputTokens: z.int() }),
    timings: z.object({ loadMs: number, promptMs: number, generateMs: number }),
    tokens: z.array(z.int()).optional(),
  }),
])
/** What a text was read into. Each goes on its own: thousands of vectors in one message would be too much. */
const VectorResult = z.object({
  /** Of the text, among those of the call. */
  index: z.int().min(0),
  /** Float32, little-endian, in base64. A rank is one number. */
  vector: z.string(),
  inputTokens: z.int().min(0),
})
export type VectorResult = z.output<typeof VectorResult>

/** A number, a text or a piece of one, a piece of token ids, or what one text was read into. */
const CallResult = z.union([z.number(), z.string(), tokenIds, VectorResult])
export type CallResult = z.output<typeof CallResult>

const WireError = z.object({
  code: z.string(),
  message: z.string(),
  details: z.record(z.string(), z.unknown()),
  /** For the log of the app, never for clients. */
  cause: z.string().optional(),
})
export type WireError = z.output<typeof WireError>

const footprint = {
  contextSize: z.int(),
  /** The memory for weights and context, and the part of it that is on a graphics card. */
  sizeBytes: number.min(0),
  gpuBytes: number.min(0),
  /** What is not as it was wanted, for the log of the app. */
  notes: z.array(z.string()),
  /** What a step takes at worst, in milliseconds, as it was measured at load. */
  stepMs: number.min(0),
}
export interface Footprint {
  readonly contextSize: number
  readonly sizeBytes: number
  readonly gpuBytes: number
  readonly notes: readonly string[]
  readonly stepMs: number
}

/** From the model process. */
export const FromProcess = z.discriminatedUnion('type', [
  z.object({ type: z.literal('loaded'), ...footprint }),
  z.object({ type: z.literal('failed'), error: WireError }),
  /** For memory that others have: it is not loaded before they rest. */
  z.object({ type: z.literal('waiting') }),
  z.object({ type: z.literal('events'), events: z.array(z.object({ id: z.int(), event: Event })) }),
  /** What a call that makes no events comes to, or a piece of it. */
  z.object({ type: z.literal('result'), id: z.int(), value: CallResult }),
  /** The end of a call, whole, failed or cancelled; the model is free again. */
  z.object({ type: z.literal('done'), id: z.int(), error: WireError.optional() }),
  /** `steps` grows with every piece of work that a call does. */
  z.object({ type: z.literal('pong'), steps: z.int() }),
  /** It makes room for another model, and is no failure. */
  z.object({ type: z.literal('leaving') }),
])
export type FromProcess =
  | ({ readonly type: 'loaded' } & Footprint)
  | { readonly type: 'failed'; readonly error: WireError }
  | { readonly type: 'waiting' }
  | {
      readonly type: 'events'
      readonly events: readonly { readonly id: number; readonly event: GenerateEvent }[]
    }
  | { readonly type: 'result'; readonly id: number; readonly value: CallResult }
  | { readonly type: 'done'; readonly id: number; readonly error?: WireError }
  | { readonly type: 'pong'; readonly steps: number }
  | { readonly type: 'leaving' }

/** Left out of an error's `param`: the callers of `chat()` and of the dialects do not write them. */
const omittedParamKeys: ReadonlySet<PropertyKey> = new Set(['input', 'sampling', 'load'])

/** Throws `invalid_request` for what the native code must not see. */
export const parseGenerateRequest = createParser<GenerateRequest>(Request, measureTextLength, 'messages')
export const parseEmbedRequest = createParser<EmbedRequest>(
  Embed,
  ({ inputs }) => sumLengths(inputs),
  'inputs',
)
export const parseRerankRequest = createParser<RerankRequest>(
  Rerank,
  ({ query, documents }) => sumLengths([query, ...documents]),
  'documents',
)
export const parseTokenizeRequest = createParser<TokenizeRequest>(Tokenize, ({ text }) => text.length, 'text')
export const parseDetokenizeRequest = createParser<DetokenizeRequest>(
  Detokenize,
  ({ tokens }) => tokens.length,
  'tokens',
)

/** In characters and token ids. */
export function sumLengths(pieces: readonly { readonly length: number }[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0)
}

/** @param longestField the field with most of the text */
function createParser<T>(
  schema: z.ZodType,
  length: (request: T) => number,
  longestField: string,
): (value: unknown) => T {
  return (value) => {
    const result = schema.safeParse(value)
    if (!result.success) {
      const [issue] = result.error.issues
      const param = formatFieldPath(issue?.path.filter((key) => !omittedParamKeys.has(key)) ?? [])
      throw invalidRequest(`Invalid '${param}': ${issue?.message}`, { param })
    }
    const request = result.data as T
    if (length(request) <= limits.text) return request
    throw invalidRequest(`What is said in '${longestField}' is longer than ${limits.text} characters.`, {
      param: longestField,
    })
  }
}

export const encodeVector = (values: ArrayLike<number>): string =>
  Buffer.from(Float32Array.from(values).buffer).toString('base64')
export function decodeVector(vector: string): readonly number[] {
  const bytes = Buffer.from(vector, 'base64')
  return Array.from({ length: bytes.length >> 2 }, (_, index) => bytes.readFloatLE(4 * index))
}

export const toWireError = (error: unknown): WireError => {
  const { code, message, details, cause } = LlmError.from(error)
  return { code, message, details: { ...details }, ...(cause !== undefined && { cause: formatStack(cause) }) }
}
export const fromWireError = ({ code, message, details, cause }: WireError): LlmError =>
  new LlmError(
    code as LlmErrorCode,
    message,
    details as LlmErrorDetails,
    cause === undefined ? {} : { cause: new Error(cause) },
  )

const formatStack = (cause: unknown): string =>
  String(cause instanceof Error ? (cause.stack ?? cause.message) : cause).slice(0, 4_000)
