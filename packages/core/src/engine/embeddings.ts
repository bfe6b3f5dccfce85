/** What is asked of models that make vectors and ranks instead of text, and what they answer. */
import type { LoadOptions } from './request.ts'

export interface EmbedRequest {
  readonly model: string
  /** Each a text, or ids in this model's vocabulary; an empty one is refused. None come to no vectors. */
  readonly inputs: readonly (string | readonly number[])[]
  /** An input that is longer than the model takes: refused, or its end is left out. @default 'error' */
  readonly overflow?: 'error' | 'truncate'
  /** Only the first so many numbers of each vector, of length 1 again; of a shorter one all. @default all */
  readonly dimensions?: number
  readonly load?: LoadOptions
}

export interface Embeddings {
  /** One for each input, in order, of length 1. */
  readonly embeddings: readonly (readonly number[])[]
  /** Of all inputs, as they were read. */
  readonly inputTokens: number
  readonly loadMs: number
  readonly totalMs: number
}

export interface RerankRequest {
  readonly model: string
  readonly query: string
  /** An empty one is refused. */
  readonly documents: readonly string[]
  /** A query and document that are longer than the model takes together: refused, or the document's end is left out. @default 'error' */
  readonly overflow?: 'error' | 'truncate'
  readonly load?: LoadOptions
}

export interface Ranking {
  /** From 0 to 1, one for each document, in order. */
  readonly scores: readonly number[]
  /** Of all documents, each with the query, as they were read. */
  readonly inputTokens: number
}
