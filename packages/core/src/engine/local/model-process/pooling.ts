/** Embedding and reranking, as code outside of `llama/` uses them. */
import type { Token } from 'node-llama-cpp'
import type { ModelTask } from '../ipc/messages.ts'
import type { ContextPool } from './llama/context-pool.ts'

/** Tokens of a text to embed, or of a query and a document. */
export type PoolingInput = readonly (readonly Token[])[]

/**
 * Embeds each text, or ranks each document for its query, in one decode. A rank is one number from 0 to 1. The inputs
 * have to respect `PoolingContexts.limits`.
 */
export type EvaluateTexts = (inputs: readonly PoolingInput[]) => Promise<readonly ArrayLike<number>[]>

/** Limits of one decode. An input with more tokens is evaluated alone. */
export interface GroupLimits {
  readonly tokens: number
  readonly texts: number
}

export interface PoolingContexts {
  readonly kind: ModelTask
  /** Maximum length of a text in tokens, special tokens included. */
  readonly maxTokens: number
  /** Length of a query and a document together, with the special tokens between them. */
  lengthOf(query: readonly Token[], document: readonly Token[]): number
  readonly limits: GroupLimits
  /** Estimated time to evaluate a text of `maxTokens` tokens, in ms. */
  readonly stepMs: number
  readonly pool: ContextPool<EvaluateTexts>
}
