/** What differs between the APIs of upstream servers. */
import type { Capability, ModelDetails } from '../../models/gguf/model-details.ts'
import type { Model } from '../../models/model.ts'
import type { Embeddings, EmbedRequest, Ranking, RerankRequest } from '../embeddings.ts'
import type { EngineCall } from '../engine.ts'
import type { FinishReason, GenerateEvent, PromptProgress, SampledToken } from '../events.ts'
import type { CacheLifetime, GenerateRequest, LoadOptions } from '../request.ts'
import type { DetokenizeRequest, TokenizeRequest, TokenPiece } from '../tokens.ts'
import type { UpstreamClient } from './upstream-client.ts'

/** Methods throw the errors of `Engine`. What an API cannot do is an `LlmError` `invalid_request` with a `param`. */
export interface UpstreamApi {
  /** Headers of each request. */
  headers(apiKey: string | undefined): Readonly<Record<string, string>>
  listModels(client: UpstreamClient, signal: AbortSignal): Promise<readonly ListedModel[]>
  /** Yields the events of an answer. Ends early, without an error, when the signal aborts. */
  generate(
    request: GenerateRequest,
    client: UpstreamClient,
    call: EngineCall,
    answer: AnswerDefaults,
  ): AsyncIterable<GenerateEvent>
  /** Whether `countTokens` always counts, and so also bounds the tokens of a prompt. @default false */
  readonly countsExactly?: boolean
  /** Counts the tokens of a prompt. Resolves to undefined if the server cannot count. */
  countTokens?(
    request: GenerateRequest,
    client: UpstreamClient,
    call: EngineCall,
  ): Promise<number | undefined>
  countCachedTokens?(request: GenerateRequest, client: UpstreamClient, call: EngineCall): Promise<number>
  embed?(request: EmbedRequest, client: UpstreamClient, call: EngineCall): Promise<Embeddings>
  rerank?(request: RerankRequest, client: UpstreamClient, call: EngineCall): Promise<Ranking>
  render?(request: GenerateRequest, client: UpstreamClient, call: EngineCall): Promise<string>
  tokenize?(request: TokenizeRequest, client: UpstreamClient, call: EngineCall): Promise<readonly number[]>
  detokenize?(request: DetokenizeRequest, client: UpstreamClient, call: EngineCall): Promise<string>
  tokenPieces?(
    request: DetokenizeRequest,
    client: UpstreamClient,
    call: EngineCall,
  ): Promise<readonly TokenPiece[]>
  /** Absent if the server decides when it loads a model. */
  load?(model: string, options: LoadOptions, client: UpstreamClient, call: EngineCall): Promise<void>
  unload?(model: string, client: UpstreamClient, signal: AbortSignal): Promise<void>
  /** Deletes the KV states of the tenant of the client, and returns their number. */
  deletePromptStates?(client: UpstreamClient, signal: AbortSignal): Promise<number>
}

/** Values of an answer that the server has not sent yet. */
export interface AnswerDefaults {
  readonly fingerprint: string
  /** Tokens of the prompt. */
  readonly estimatedInputTokens: number
}

/** A model, with what the server says about it. */
export interface ListedModel {
  readonly name: string
  /** Maximum number of tokens of prompt and answer together. */
  readonly contextSize?: number | undefined
  readonly capabilities?: readonly Capability[] | undefined
  readonly modifiedAt?: Date | undefined
  readonly sizeBytes?: number | undefined
  readonly parameterSize?: string | undefined
  readonly quantization?: string | undefined
  readonly architecture?: string | undefined
  readonly digest?: string | undefined
  /** The other fields of the details. */
  readonly details?: ModelDetails | undefined
  readonly defaults?: Model['defaults'] | undefined
  readonly config?: Model['config'] | undefined
}

/** Counts of the server. Those that it does not report are absent. */
export interface ReportedUsage {
  /** Length of the whole prompt, with the parts that were read from a cache. */
  readonly inputTokens?: number | undefined
  /** Part of the prompt that the server has read from its cache. */
  readonly cachedTokens?: number | undefined
  readonly cacheWriteTokens?: Readonly<Record<CacheLifetime, number>> | undefined
  readonly outputTokens?: number | undefined
}

export type AnswerPiece =
  /** What is known at the beginning. Only the first piece may be a `start`. */
  | {
      readonly type: 'start'
      readonly usage?: ReportedUsage | undefined
      readonly fingerprint?: string | undefined
    }
  /** How far the prompt is evaluated. Comes before the first text. */
  | ({ readonly type: 'progress' } & PromptProgress)
  | {
      readonly type: 'text' | 'reasoning'
      readonly text: string
      /** @default 1, since servers send a token per event */
      readonly tokens?: number
      readonly logprobs?: readonly SampledToken[] | undefined
    }
  /** A further tool call. The arguments that follow are its. */
  | { readonly type: 'tool-call'; readonly id: string; readonly name: string }
  | { readonly type: 'tool-arguments'; readonly json: string; readonly tokens?: number }
  | {
      readonly type: 'end'
      readonly finishReason: FinishReason
      readonly stopSequence?: string | undefined
      readonly usage?: ReportedUsage | undefined
      /** Token ids of prompt and output. */
      readonly tokens?: readonly number[] | undefined
    }

/** An answer that a server is sending. */
export interface UpstreamAnswer<Part> {
  /** The events or lines of the answer, in the lists in which they arrive. Ends early when the signal of the call aborts. */
  readonly parts: AsyncIterable<readonly Part[]>
  readonly reader: AnswerReader<Part>
}

/** Reads one answer. Its methods throw an `LlmError` for a part that is not as expected, or reports an error. */
export interface AnswerReader<Part> {
  /** Returns the pieces in a part. The last piece of an answer is `end`. */
  read(part: Part): readonly AnswerPiece[]
  /** Returns the last piece of an answer that ends with the response. */
  end?(): AnswerPiece | undefined
}
