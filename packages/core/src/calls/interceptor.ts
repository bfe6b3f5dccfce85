/** Interceptors: code of the host app that runs around each call of a model. */
import type { Caller } from '../accounts/auth/caller.ts'
import type { EmbedRequest, RerankRequest } from '../engine/embeddings.ts'
import type { GenerateRequest } from '../engine/request.ts'
import type { DetokenizeRequest, TokenizeRequest } from '../engine/tokens.ts'
import type { CallEnd } from './call.ts'
import type { EventMapper } from './output/event-mapping.ts'

/** The requests that interceptors see, by kind of call. `count` and `render` never generate. */
interface InterceptedRequests {
  readonly generate: GenerateRequest
  readonly count: GenerateRequest
  readonly render: GenerateRequest
  readonly embed: EmbedRequest
  readonly rerank: RerankRequest
  readonly tokenize: TokenizeRequest
  readonly detokenize: DetokenizeRequest
}
export type InterceptedKind = keyof InterceptedRequests
export type InterceptedRequest = InterceptedRequests[InterceptedKind]

/** What an interceptor knows about a call. Its fields cannot be changed. */
export interface CallInfo {
  /** Id of the call, as in its response and in the ledger. */
  readonly id: string
  /** Name of the model, as in the ledger. */
  readonly model: string
  /** A copy of the authenticated caller. Undefined for calls of the app itself. */
  readonly caller: Caller | undefined
  /** Empty for calls of the app itself. */
  readonly tenant: string
  /** Id of the end user behind the caller. */
  readonly endUser: string | undefined
  /** The API of the call: `openai`, `anthropic` or `ollama`. Undefined in process. */
  readonly dialect: string | undefined
  /** Whether the call is an item of a batch. */
  readonly isBatchItem: boolean
}

/** One request of a call, for `before` and `mapEvents`. A completion with several prompts has several. */
export type InterceptedCall<Kind extends InterceptedKind = InterceptedKind> = {
  readonly [One in Kind]: CallInfo & {
    readonly kind: One
    readonly request: InterceptedRequests[One]
    /** Position of the request in the call, from 0. */
    readonly index: number
    /** Aborts when the client leaves, and when its API key is revoked. */
    readonly signal: AbortSignal
  }
}[Kind]

/** A call that is over, for `after`. */
export interface EndedCall extends CallInfo {
  readonly kind: InterceptedKind
  /** The requests as they were at the end, with everything that interceptors and Modelfile have changed. */
  readonly requests: readonly InterceptedRequest[]
}

/**
 * Code around each call that generates, embeds, reranks, counts, renders or tokenizes, over HTTP and in
 * process. With several interceptors, `before` runs in the order of the list. Events and `after` pass them
 * in reverse order.
 */
export interface Interceptor {
  /** Appears in the log when the interceptor fails. */
  readonly name?: string
  /**
   * Runs before the call waits for the model, when the caller is authorised and its limits of requests have
   * admitted the call. Returns a new request, or nothing to keep the request. Throws an `LlmError` to refuse
   * the call.
   */
  before?(call: InterceptedCall): InterceptedRequest | undefined | Promise<InterceptedRequest | undefined>
  /** Creates the mapper of one answer, or returns nothing to keep its events. */
  mapEvents?(call: InterceptedCall<'generate'>): EventMapper | undefined
  /**
   * Runs once when the call is over, however it has ended, if the call had reached this interceptor. The end
   * of the call waits for it, at most 2 s. Its errors are logged and nothing else.
   */
  after?(call: EndedCall, end: CallEnd): unknown
}
