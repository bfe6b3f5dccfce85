/** Reranking models of the SDK that run in process. */
import type { RerankingModelV3 } from '@ai-sdk/provider'
import { type ModelSource, providerName, toCallOptions, withSdkErrors } from './model-call.ts'
import { type RerankingOptions, readOptions, rerankingKeys } from './provider-options.ts'

export function createRerankingModel(source: ModelSource): RerankingModelV3 {
  const { llm, modelId: model } = source
  return {
    specificationVersion: 'v3',
    provider: providerName,
    modelId: model,

    /** Ranks texts, or objects as JSON, the most relevant first. */
    async doRerank({ documents: given, query, topN, abortSignal: signal, providerOptions }) {
      const { endUser, background, ...options } = readOptions<RerankingOptions>(
        providerOptions,
        rerankingKeys,
      )
      const call = { ...toCallOptions(source, { endUser, background }), ...(signal && { signal }) }
      const documents = given.type === 'text' ? given.values : given.values.map((one) => JSON.stringify(one))
      return withSdkErrors(model, signal, async () => {
        const { scores } = await llm.rerank({ model, query, documents, ...options }, call)
        const ranking = scores
          .map((relevanceScore, index) => ({ index, relevanceScore }))
          .sort((a, b) => b.relevanceScore - a.relevanceScore)
        return { ranking: ranking.slice(0, topN), warnings: [] }
      })
    },
  }
}
