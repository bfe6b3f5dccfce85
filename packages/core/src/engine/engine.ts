/** The contract of everything that makes tokens. */
import type { Embeddings, EmbedRequest, Ranking, RerankRequest } from './embeddings.ts'
import type { GenerateEvent } from './events.ts'
import type { GenerateRequest, LoadOptions } from './request.ts'
import type { DetokenizeRequest, TokenizeRequest } from './tokens.ts'

export interface Engine {
  /**
   * Streams one answer. Ends early, without an error, when `call.signal` aborts.
   * Throws `LlmError` only: `invalid_request`, `not_found`, `context_length`, `overloaded`, `upstream`.
   */
  generate(request: GenerateRequest, call: EngineCall): AsyncIterable<GenerateEvent>
  /**
   * How many tokens the prompt of `request` has, also when they are more than the context holds.
   * Rejects with an `AbortError` when `call.signal` aborts. Throws `LlmError` only, like `generate`.
   */
  countTokens(request: GenerateRequest, call: EngineCall): Promise<number>
  /** The prompt of `request`, as the model's template makes it. Rejects and throws like `countTokens`. */
  render(request: GenerateRequest, call: EngineCall): Promise<string>
  /** Vectors of texts. Rejects and throws like `countTokens`; `invalid_request` where the model makes none. */
  embed(request: EmbedRequest, call: EngineCall): Promise<Embeddings>
  /** How well documents answer a query. Rejects and throws like `countTokens`; `invalid_request` where the model cannot say. */
  rerank(request: RerankRequest, call: EngineCall): Promise<Ranking>
  /** A text as the model reads it. Rejects and throws like `countTokens`. */
  tokenize(request: TokenizeRequest, call: EngineCall): Promise<readonly number[]>
  /** The text of tokens, special ones by their names. Rejects and throws like `countTokens`. */
  detokenize(request: DetokenizeRequest, call: EngineCall): Promise<string>
  /** Resolves when the model is loaded. Rejects and throws like `countTokens`. */
  load(model: string, options: LoadOptions, call: EngineCall): Promise<void>
  /** Lets go of a model when its running answers have ended. Nothing happens where it is not loaded. */
  unload(model: string): Promise<void>
  loaded(): readonly LoadedModel[]
  /** Ends running answers and frees everything. */
  close(): Promise<void>
}

export interface EngineCall {
  readonly signal: AbortSignal
  /** Who asks. What was read for one is never used for another. @default one for all */
  readonly tenant?: string
  /** Nobody waits for it: it pauses while the model has others to answer. @default false */
  readonly background?: boolean
  /** So many tokens at most wait for a slow reader; then the model waits for it. @default a whole answer */
  readonly readAheadTokens?: number
}

export interface LoadedModel {
  readonly name: string
  /** Of the model when it was loaded; the name may mean another one by now, or none. */
  readonly digest?: string
  readonly state: 'loading' | 'ready'
  /** The process that holds it, where there is one. */
  readonly processId?: number | undefined
  /** Tokens that a prompt and its answer may have together; 0 until it is known. */
  readonly contextSize: number
  /** The memory that it takes, in bytes, and how much of it is a graphics card's; 0 until it is known. */
  readonly sizeBytes: number
  readonly gpuBytes: number
  /** When it goes, if nobody uses it any more. */
  readonly expiresAt: Date | 'never'
}
