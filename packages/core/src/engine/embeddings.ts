/** Requests and results of pooling models: embedding and reranking. */
import type { LoadOptions } from './request.ts'

export interface EmbedRequest {
  readonly model: string
  /**
   * At most 10,000 inputs. Each is a text or a list of token ids of this model, and must not be empty. With
   * no inputs, the result has no vectors.
   */
  readonly inputs: readonly (string | readonly number[])[]
  /** `error` rejects an input that is longer than the context, `truncate` cuts its end. @default 'error' */
  readonly overflow?: 'error' | 'truncate'
  /**
   * Cuts each vector to this many numbers and normalises it again. Shorter vectors stay unchanged.
   * @default the full length
   */
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
  /** At most 10,000. An empty document is rejected. */
  readonly documents: readonly string[]
  /**
   * `error` rejects a query and document that together exceed the context, `truncate` cuts the document.
   * @default 'error'
   */
  readonly overflow?: 'error' | 'truncate'
  readonly load?: LoadOptions
}

export interface Ranking {
  /** One score from 0 to 1 per document, in order. */
  readonly scores: readonly number[]
  /** Evaluated tokens of all documents. The query counts once per document. */
  readonly inputTokens: number
}
