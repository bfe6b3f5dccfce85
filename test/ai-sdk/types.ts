/** Compiles with both supported versions of the AI SDK: an app in TypeScript. */
import { createModelmount, type LanguageModelOptions, type ModelmountProvider } from '@modelmount/ai-sdk'
import type { Llm } from '@modelmount/core'
import { createProviderRegistry, embed, generateText, rerank, streamText, wrapLanguageModel } from 'ai'

export async function useModels(llm: Llm): Promise<string> {
  const modelmount: ModelmountProvider = createModelmount(llm, { caller: { id: 'ada' } })
  const model = modelmount('tiny')
  const modelmountOptions = { reasoning: false, minP: 0.1 } satisfies LanguageModelOptions
  const { text } = await generateText({
    model,
    prompt: 'Hi',
    providerOptions: { modelmount: modelmountOptions },
  })
  const { embedding } = await embed({ model: modelmount.embeddingModel('encoder'), value: text })
  const { ranking } = await rerank({
    ...{ model: modelmount.rerankingModel('ranker'), documents: ['a', 'b'], query: text },
  })
  const registry = createProviderRegistry({ modelmount })
  const streamed = streamText({ model: registry.languageModel('modelmount:tiny'), prompt: 'Hi' })
  wrapLanguageModel({ model, middleware: [] })
  // @ts-expect-error The caller is a setting, not the second argument.
  createModelmount(llm, { id: 'ada' })
  return `${await streamed.text} ${embedding.length} ${ranking.length}`
}
