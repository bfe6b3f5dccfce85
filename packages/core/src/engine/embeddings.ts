/** Requests and results of pooling models: embedding and reranking. */
import type { LoadOptions } from './request.ts'

export interface EmbedRequest {
  readonly model: string
  /** Texts or lists of token ids in this model's vocabulary. An empty input is rejected; an empty list gives no vectors. */
  readonly inputs: readonly (string | readonly number[])[]
  /** For an input longer than the context: reject it, or cut its end. @default 'error' */
  readonly overflow?: 'error' | 'truncate'
  /** Keeps this many leading numbers of each vector and normalises it again; a shorter vector stays whole. @default all */
  readonly dimensions?: number
  readonly load?: LoadOptions
}

export interface Embeddings {
  /** One vector of length 1 per input, in order. */
  readonly embeddings: readonly (readonly number[])[]
  /** Evaluated tokens of all inputs. */
  readonly inputTokens: number
  readonly loadMs: number
  readonly totalMs: number
}

export interface RerankRequest {
  readonly model: string
  readonly query: string
  /** An empty document is rejected. */
  readonly documents: readonly string[]
  /** For a query and document longer than the context: reject them, or cut the document's end. @default 'error' */
  readonly overflow?: 'error' | 'truncate'
  readonly load?: LoadOptions
}

export interface Ranking {
  /** One score from 0 to 1 per document, in order. */
  readonly scores: readonly number[]
  /** Evaluated tokens of all documents, each with the query. */
  readonly inputTokens: number
}
