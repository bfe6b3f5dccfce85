/** The user's facade. `create-llm.ts` implements it. */
import type { Access } from './accounts/auth/access.ts'
import type { Caller } from './accounts/auth/caller.ts'
import type { Keys } from './accounts/keys/keys.ts'
import type { UsageReports } from './accounts/usage/open-metering.ts'
import type { CallOptions, UnaryCallOptions } from './calls/call.ts'
import type { Chat } from './calls/chat.ts'
import type { LlmClient, ModelActions, ModelOptional, RouteClient } from './calls/client.ts'
import type { Generation } from './calls/generation.ts'
import type { WithLimitStatus } from './calls/pipeline.ts'
import type { Embeddings, EmbedRequest, Ranking, RerankRequest } from './engine/embeddings.ts'
import type { Engine } from './engine/engine.ts'
import type { GenerateRequest, LoadOptions } from './engine/request.ts'
import type { DetokenizeRequest, TokenizeRequest } from './engine/tokens.ts'
import type { LlmError } from './errors.ts'
import type { CallerLimits, Subject, WithHeaders } from './limits/limits.ts'

export interface Llm {
  readonly chat: Chat
  /** One answer, as events. Throws `LlmError`. */
  generate(request: GenerateRequest, options: CallOptions): Promise<Generation>
  /**
   * Vectors of texts, such as `{ inputs: ['Hello'] }`. Rejects with an `AbortError` when `signal` aborts; throws
   * `LlmError`, also where the model computes none.
   */
  embed(
    request: ModelOptional<EmbedRequest>,
    options?: UnaryCallOptions,
  ): Promise<WithLimitStatus<Embeddings>>
  /** Scores of documents for a query. Rejects and throws like `embed`. */
  rerank(request: ModelOptional<RerankRequest>, options?: UnaryCallOptions): Promise<WithLimitStatus<Ranking>>
  /** Tokens of a text. Rejects and throws like `embed`. */
  tokenize(request: ModelOptional<TokenizeRequest>, options?: UnaryCallOptions): Promise<readonly number[]>
  /** The text of tokens. Rejects and throws like `embed`. */
  detokenize(request: ModelOptional<DetokenizeRequest>, options?: UnaryCallOptions): Promise<string>
  /** Tokens of the prompt of a request, without an answer. Rejects and throws like `embed`. */
  countTokens(request: GenerateRequest, options?: UnaryCallOptions): Promise<number>
  /** The prompt of a request, as the model's template renders it. Rejects and throws like `embed`. */
  render(request: GenerateRequest, options?: UnaryCallOptions): Promise<string>
  /** Loads a model ahead of its first call. Rejects and throws like `embed`. */
  load(model: string, options?: LoadOptions & UnaryCallOptions): Promise<void>
  /** Frees the memory of a model when its running answers have ended. Throws `not_found`. */
  unload(model: string): Promise<void>
  readonly loaded: Engine['loaded']
  readonly models: ModelActions
  /** API keys. Its methods reject with a `TypeError` where no option names a `database` or needs one. */
  readonly keys: Keys
  /** Usage and cost reports. Rejects with a `TypeError` where there is no database. */
  readonly usage: UsageReports
  /** The limits of callers and models, also for routes of the app. */
  readonly limits: CallerLimits
  /**
   * Returns the API key of a request to a route of the host app: `rateLimit(llm.limits, { keyGenerator: llm.apiKeyGenerator })`. An API
   * key with limits spends them on such routes and on models together. A key without limits has those of the route. Throws
   * `authentication`.
   */
  apiKeyGenerator(request: WithHeaders): Promise<Subject>
  /** The surface that one caller can use: its models, its limits, its spending. Throws `LlmError` for a wrong caller. */
  as(caller: Caller): LlmClient
  /** Ends running answers and the model processes, and charges what was used. */
  close(): Promise<void>
  readonly [internals]: LlmInternals
}

/** For dialects and adapters, which may come from another copy of this package. */
export const internals: unique symbol = Symbol.for('modelmount.internals') as never

export interface LlmInternals {
  /** Authentication and origin checks of the routes. */
  readonly access: Access
  /** Logs an error that the client cannot do anything about. */
  report(error: LlmError): void
  /** The client of one request. @param caller checked */
  clientOf(caller: Caller, dialect: string): RouteClient
}
