import type { GgufInsights } from 'node-llama-cpp'

import type { ModelTask } from '../ipc/messages.ts'

/** llama.cpp's pooling types for embeddings: mean, first token, last token. */
const vectorPoolingTypes: readonly unknown[] = [1, 2, 3]
const rankPoolingType = 4

export function detectModelTask({
  supportsRanking,
  ggufFileInfo: { architectureMetadata },
}: Pick<GgufInsights, 'supportsRanking' | 'ggufFileInfo'>): ModelTask {
  const { pooling_type: pooling, attention } = architectureMetadata as {
    readonly pooling_type?: number
    readonly attention?: { readonly causal?: boolean }
  }
  // Some files with a ranking head also name the pooling before it, so ranking is checked first.
  if (supportsRanking) return 'rerank'
  if (vectorPoolingTypes.includes(pooling)) return 'embed'
  // An encoder attends to all tokens and cannot predict the next one.
  return attention?.causal === false || pooling === rankPoolingType ? 'unsupported' : 'generate'
}
