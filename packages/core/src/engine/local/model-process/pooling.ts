/** Embedding and reranking, as the rest of this folder sees them. */
import type { Token } from 'node-llama-cpp'
import type { ContextPool } from './llama/context-pool.ts'
import type { ModelTask } from './model-kind.ts'

/** Embeds one text, or ranks a document for a query: a number from 0 to 1. */
export type EvaluateTexts = (...texts: readonly (readonly Token[])[]) => Promise<ArrayLike<number>>

export interface PoolingContexts {
  readonly kind: ModelTask
  /** Maximum length of a text in tokens, special tokens included. */
  readonly maxTokens: number
  /** Length of a query and a document together, with the special tokens between them. */
  lengthOf(query: readonly Token[], document: readonly Token[]): number
  /** Time for the longest text, in ms. */
  readonly stepMs: number
  readonly pool: ContextPool<EvaluateTexts>
}
