/** Requests and results of pooling models: embedding and reranking. */
import type { LoadOptions } from './request.ts'

/** Texts whose vectors an engine computes. */
export interface EmbedRequest {
  /** Name of the model, such as `nomic-embed-text`. */
  readonly model: string
  /**
   * At most 10,000 inputs. Each is a text or a list of token ids of this model, and must not be empty. With
   * no inputs, the result has no vectors.
   */
  readonly inputs: readonly (string | readonly number[])[]
  /** `error` rejects an input that is longer than the context, `truncate` cuts its end. @default 'error' */
  readonly overflow?: 'error' | 'truncate'
  /**
   * Cuts each vector to this many numbers, at least 1, and normalises it again. Shorter vectors stay unchanged.
   *
   * @default the full length
   */
  readonly dimensions?: number
  /** How the model is loaded. @default the settings of the app */
  readonly load?: LoadOptions
}

/** Vectors of texts. */
export interface Embeddings {
  /** One vector of length 1 per input, in order. */
  readonly embeddings: readonly (readonly number[])[]
  /** Evaluated tokens of all inputs. */
  readonly inputTokens: number
  /** Milliseconds that the call waited for the model to be loaded. 0 for a loaded model. */
  readonly loadMs: number
  /** Milliseconds from the start of the call to its end. */
  readonly totalMs: number
}

/** Documents that an engine scores against a query. */
export interface RerankRequest {
  /** Name of the model, such as `bge-reranker-v2-m3`. */
  readonly model: string
  /** The text that documents are compared with. */
  readonly query: string
  /** At most 10,000. An empty document is rejected. */
  readonly documents: readonly string[]
  /**
   * `error` rejects a query and document that together exceed the context, `truncate` cuts the document.
   * @default 'error'
   */
  readonly overflow?: 'error' | 'truncate'
  /** How the model is loaded. @default the settings of the app */
  readonly load?: LoadOptions
}

/** Scores of documents. */
export interface Ranking {
  /** One score from 0 to 1 per document, in order. */
  readonly scores: readonly number[]
  /** Evaluated tokens of all documents. The query counts once per document. */
  readonly inputTokens: number
}
