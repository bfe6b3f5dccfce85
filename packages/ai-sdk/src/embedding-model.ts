/** Embedding models of the SDK that run in process. */
import type { EmbeddingModelV3 } from '@ai-sdk/provider'
import { type ModelSource, providerName, toCallOptions, withSdkErrors } from './model-call.ts'
import { type EmbeddingOptions, embeddingKeys, readOptions } from './provider-options.ts'

export function createEmbeddingModel(source: ModelSource): EmbeddingModelV3 {
  const { llm, modelId: model } = source
  return {
    specificationVersion: 'v3',
    provider: providerName,
    modelId: model,
    // The most texts that `llm.embed()` accepts.
    maxEmbeddingsPerCall: 10_000,
    supportsParallelCalls: true,

    async doEmbed({ values: inputs, abortSignal: signal, providerOptions }) {
      const { endUser, background, ...options } = readOptions<EmbeddingOptions>(
        providerOptions,
        embeddingKeys,
      )
      const call = { ...toCallOptions(source, { endUser, background }), ...(signal && { signal }) }
      return withSdkErrors(model, signal, async () => {
        const { embeddings, inputTokens: tokens } = await llm.embed({ model, inputs, ...options }, call)
        return { embeddings: embeddings.map((vector) => [...vector]), usage: { tokens }, warnings: [] }
      })
    },
  }
}
