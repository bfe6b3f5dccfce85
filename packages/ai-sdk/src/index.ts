/** The entry point `@modelmount/ai-sdk`. */
export {
  createModelmount,
  type ModelmountProvider,
  type ModelmountProviderSettings,
} from './provider.ts'
export type {
  CacheOptions,
  EmbeddingOptions,
  LanguageModelOptions,
  RerankingOptions,
} from './provider-options.ts'
