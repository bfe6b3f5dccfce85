/** What a model is made for, as its file says. */
import type { GgufInsights } from 'node-llama-cpp'

/** What a model can do. `unsupported`: an encoder whose file names no pooling. */
export type ModelTask = 'generate' | 'embed' | 'rerank' | 'unsupported'

/** How an encoder, or a decoder that was trained for it, makes one vector of many: by mean, first or last. */
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
  // Its head comes behind the pooling, which some files name.
  if (supportsRanking) return 'rerank'
  if (vectorPoolingTypes.includes(pooling)) return 'embed'
  // An encoder sees all tokens at once: asked for the next one, it says noise.
  return attention?.causal === false || pooling === rankPoolingType ? 'unsupported' : 'generate'
}
