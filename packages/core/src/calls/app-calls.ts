/** The calls of the host app: checks their requests and options, and runs them through the client of a caller. */
import type { Embeddings, EmbedRequest, Ranking, RerankRequest } from '../engine/embeddings.ts'
import type { GenerateRequest, LoadOptions } from '../engine/request.ts'
import type { DetokenizeRequest, TokenizeRequest } from '../engine/tokens.ts'
import type { CallOptions, UnaryCallOptions } from './call.ts'
import { type Chat, createChat } from './chat/chat.ts'
import { checkType, expected, omitFields } from './check-fields.ts'
import { checkCallOptions, checkGenerateRequest, checkRequest } from './check-requests.ts'
import type {
  CallerClient,
  ClientCallOptions,
  LlmClient,
  LoadProgressOption,
  ModelOptional,
} from './client.ts'
import type { Generation } from './generation.ts'
import { markMistakesOf } from './mistakes.ts'
import type { WithLimitStatus } from './pipeline.ts'
import {
  callFields,
  detokenizeFields,
  embedFields,
  loadFields,
  rerankFields,
  tokenizeFields,
} from './request-fields.ts'

/**
 * The methods that call a model. They reject with an `LlmError` `invalid_request` that names an unknown field or option,
 * and with an `AbortError` when `signal` aborts. A wrong option has `details.setup` and the status 500.
 */
export interface AppCalls<Options = CallOptions, ChatExtra = unknown> {
  /**
   * Answers a prompt or a conversation: text, an object of a schema, tool calls, or a stream of these. Rejects with
   * an `LlmError`, and with an `AbortError` when `signal` aborts.
   */
  readonly chat: Chat<ChatExtra>
  /**
   * Generates one answer as a stream of events. Resolves when the answer begins. `collect()` joins the events. Throws
   * `LlmError`. When `signal` aborts, the stream ends without an error.
   */
  generate(request: ModelOptional<GenerateRequest>, options?: Options): Promise<Generation>
  /**
   * Computes the embedding vectors of texts: `llm.embed('Hello')` returns `embedding`, `llm.embed(['Hello', 'Bye'])`
   * returns `embeddings`. Throws `LlmError`: `invalid_request` for a model without embeddings.
   */
  embed(
    input: string,
    options?: EmbedOptions & Unary<Options>,
  ): Promise<WithLimitStatus<Embeddings & { readonly embedding: readonly number[] }>>
  embed(
    inputs: EmbedRequest['inputs'],
    options?: EmbedOptions & Unary<Options>,
  ): Promise<WithLimitStatus<Embeddings>>
  embed(request: ModelOptional<EmbedRequest>, options?: Unary<Options>): Promise<WithLimitStatus<Embeddings>>
  /** Scores documents by their relevance to a query. Throws `LlmError`: `invalid_request` for a model that cannot. */
  rerank(request: ModelOptional<RerankRequest>, options?: Unary<Options>): Promise<WithLimitStatus<Ranking>>
  /** Splits a text into tokens. Throws `LlmError`. */
  tokenize(request: ModelOptional<TokenizeRequest>, options?: Unary<Options>): Promise<readonly number[]>
  /** Converts tokens back to text. Throws `LlmError`. */
  detokenize(request: ModelOptional<DetokenizeRequest>, options?: Unary<Options>): Promise<string>
  /** Counts the tokens of a request's prompt without generating an answer. Throws `LlmError`. */
  countTokens(request: ModelOptional<GenerateRequest>, options?: Unary<Options>): Promise<number>
  /** Renders a request's prompt with the model's template. Throws `LlmError`. */
  render(request: ModelOptional<GenerateRequest>, options?: Unary<Options>): Promise<string>
  /** Loads a model ahead of its first call. Throws `LlmError`. */
  load(model: string, options?: LoadOptions & LoadProgressOption & Unary<Options>): Promise<void>
}

type Unary<Options> = Omit<Options, 'stream'>
type EmbedOptions = Omit<ModelOptional<EmbedRequest>, 'inputs'>

/** The methods of an `Llm` for one caller: see `llm.as()`. */
export interface CallerLlm
  extends AppCalls<ClientCallOptions, { readonly caller?: undefined }>,
    Omit<LlmClient, keyof AppCalls> {}

/**
 * @param clientFor returns the client of a caller. Throws an `LlmError` for an invalid caller.
 * @param omitted options that these methods do not have
 */
export function createAppCalls(
  clientFor: (options: Pick<CallOptions, 'caller' | 'dialect'>) => CallerClient,
  omitted: readonly string[] = [],
): AppCalls {
  const streamOptions = omitFields(callFields, omitted)
  const unaryOptions = omitFields(streamOptions, ['stream'])
  const open = (method: string, options: UnaryCallOptions, fields: object = unaryOptions): CallerClient => {
    checkCallOptions(options, fields, method)
    return clientFor(options)
  }
  const calls: Omit<AppCalls, 'chat'> = {
    generate: async (request, options = {}) => {
      checkGenerateRequest(request, 'generate')
      return open('generate', options, streamOptions).generate(request, options)
    },
    embed: async (input: EmbedInput, options: EmbedOptions & UnaryCallOptions = {}) => {
      const { request, call } = isRequest(input)
        ? { request: input, call: options }
        : toEmbedRequest(input, options, unaryOptions)
      checkRequest(request, embedFields, 'embed')
      const result = await open('embed', call).embed(request, call)
      return { ...result, embedding: result.embeddings[0] ?? [] }
    },
    rerank: async (request, options = {}) => {
      checkRequest(request, rerankFields, 'rerank')
      return open('rerank', options).rerank(request, options)
    },
    tokenize: async (request, options = {}) => {
      checkRequest(request, tokenizeFields, 'tokenize')
      return open('tokenize', options).tokenize(request, options)
    },
    detokenize: async (request, options = {}) => {
      checkRequest(request, detokenizeFields, 'detokenize')
      return open('detokenize', options).detokenize(request, options)
    },
    countTokens: async (request, options = {}) => {
      checkGenerateRequest(request, 'countTokens')
      return open('countTokens', options).countTokens(request, options)
    },
    render: async (request, options = {}) => {
      checkGenerateRequest(request, 'render')
      return open('render', options).render(request, options)
    },
    load: async (model, options = {}) => {
      if (typeof model !== 'string') throw expected('model', 'the name of a model', model)
      const client = open('load', options, { ...unaryOptions, ...loadFields, onProgress: true })
      checkType(options.onProgress, 'onProgress', 'function')
      const { caller, dialect, ...load } = options
      return client.load(model, load)
    },
  }
  return { chat: createChat(clientFor, omitted), ...markMistakesOf(calls) }
}

/** Creates what `llm.as()` returns. */
export const createCallerLlm = (client: CallerClient): CallerLlm => ({
  ...createAppCalls(() => client, ['caller', 'dialect']),
  generateGroup: (requests, options) => client.generateGroup(requests, options),
  unload: (model) => client.unload(model),
  loaded: () => client.loaded(),
  get models() {
    return client.models
  },
  get batches() {
    return client.batches
  },
  limitStatus: () => client.limitStatus(),
})

type EmbedInput = string | EmbedRequest['inputs'] | ModelOptional<EmbedRequest>

const isRequest = (input: EmbedInput): input is ModelOptional<EmbedRequest> =>
  typeof input !== 'string' && !Array.isArray(input)

/** Separates the fields of the request from the options of the call. */
function toEmbedRequest(
  input: Exclude<EmbedInput, ModelOptional<EmbedRequest>>,
  options: EmbedOptions & UnaryCallOptions,
  callFields: object,
): { request: ModelOptional<EmbedRequest>; call: UnaryCallOptions } {
  const { inputs: _, ...requestFields } = embedFields
  checkCallOptions(options, { ...callFields, ...requestFields }, 'embed')
  const isField = ([name]: [string, unknown]): boolean => Object.hasOwn(requestFields, name)
  const entries = Object.entries(options)
  return {
    request: {
      ...Object.fromEntries(entries.filter(isField)),
      inputs: typeof input === 'string' ? [input] : input,
    },
    call: Object.fromEntries(entries.filter((entry) => !isField(entry))),
  }
}
