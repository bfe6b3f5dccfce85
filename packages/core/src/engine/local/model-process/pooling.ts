/** Embedding and reranking, as code outside of `llama/` uses them. */
import type { Token } from 'node-llama-cpp'
import type { ModelTask } from '../ipc/messages.ts'
import type { ContextPool } from './llama/context-pool.ts'

/** Embeds one text, or ranks a document for a query. A rank is one number from 0 to 1. */
export type EvaluateTexts = (...texts: readonly (readonly Token[])[]) => Promise<ArrayLike<number>>

export interface PoolingContexts {
  readonly kind: ModelTask
  /** Maximum length of a text in tokens, special tokens included. */
  readonly maxTokens: number
  /** Length of a query and a document together, with the special tokens between them. */
  lengthOf(query: readonly Token[], document: readonly Token[]): number
  /** Estimated time to evaluate a text of `maxTokens` tokens, in ms. */
  readonly stepMs: number
  readonly pool: ContextPool<EvaluateTexts>
}
