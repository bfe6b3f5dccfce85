/** The engine contract: everything that produces tokens implements it. */
import type { Model } from '../models/model.ts'
import type { Embeddings, EmbedRequest, Ranking, RerankRequest } from './embeddings.ts'
import type { GenerateEvent } from './events.ts'
import type { GenerateRequest, LoadOptions } from './request.ts'
import type { DetokenizeRequest, TokenizeRequest } from './tokens.ts'

export interface Engine {
  /**
   * Streams the events of one generation. Ends early, without an error, when `call.signal` aborts.
   * Throws `LlmError` only: `invalid_request`, `not_found`, `context_length`, `overloaded`, `upstream`.
   */
  generate(request: GenerateRequest, call: EngineCall): AsyncIterable<GenerateEvent>
  /**
   * Counts the tokens of the prompt, also of one larger than the context.
   * Rejects with an `AbortError` when `call.signal` aborts. Throws `LlmError` only, like `generate`.
   */
  countTokens(request: GenerateRequest, call: EngineCall): Promise<number>
  /** Renders the prompt with the model's template. Rejects and throws like `countTokens`. */
  render(request: GenerateRequest, call: EngineCall): Promise<string>
  /** Rejects and throws like `countTokens`; `invalid_request` for a model without embeddings. */
  embed(request: EmbedRequest, call: EngineCall): Promise<Embeddings>
  /** Scores documents against a query. Rejects and throws like `countTokens`; `invalid_request` for a model that cannot rerank. */
  rerank(request: RerankRequest, call: EngineCall): Promise<Ranking>
  /** Rejects and throws like `countTokens`. */
  tokenize(request: TokenizeRequest, call: EngineCall): Promise<readonly number[]>
  /** Special tokens become their names. Rejects and throws like `countTokens`. */
  detokenize(request: DetokenizeRequest, call: EngineCall): Promise<string>
  /** Resolves when the model is loaded. Rejects and throws like `countTokens`. */
  load(model: string, options: LoadOptions, call: EngineCall): Promise<void>
  /** Unloads a model after its running calls. Does nothing when it is not loaded. */
  unload(model: string): Promise<void>
  loaded(): readonly LoadedModel[]
  /** Ends running calls and frees all resources. */
  close(): Promise<void>
}

export interface EngineCall {
  readonly signal: AbortSignal
  /** The model that the store resolved `request.model` to. Absent: the engine looks it up. */
  readonly model?: Model | undefined
  /** Cache partition of the caller: KV state of one tenant is never reused for another. @default one for all */
  readonly tenant?: string
  /** Pauses while the model has foreground calls. @default false */
  readonly background?: boolean
  /** How many tokens may wait for a slow reader before the model pauses. @default the whole output */
  readonly readAheadTokens?: number
}

export interface LoadedModel {
  readonly name: string
  /** The digest at load time; the name may refer to another model by now, or to none. */
  readonly digest?: string
  readonly state: 'loading' | 'ready'
  /** The model process, where the engine uses one. */
  readonly processId?: number | undefined
  /** Tokens of prompt and output together; 0 while unknown. */
  readonly contextSize: number
  /** Memory in bytes, and the part of it on a graphics card; 0 while unknown. */
  readonly sizeBytes: number
  readonly gpuBytes: number
  /** When the model is unloaded if no call uses it. */
  readonly expiresAt: Date | 'never'
}
