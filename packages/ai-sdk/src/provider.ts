/** Creates the provider: the functions that return models for the AI SDK. */
import {
  type EmbeddingModelV3,
  InvalidArgumentError,
  type LanguageModelV3,
  NoSuchModelError,
  type ProviderV3,
  type RerankingModelV3,
} from '@ai-sdk/provider'
import type { Caller, Llm } from '@modelmount/core'
import { createEmbeddingModel } from './embedding-model.ts'
import { createLanguageModel } from './language-model.ts'
import type { ModelSource } from './model-call.ts'
import { createRerankingModel } from './reranking-model.ts'

/** Settings of `createModelmount()`. */
export interface ModelmountProviderSettings {
  /** The caller whose models, limits and spending apply to all calls of this provider. @default the app itself */
  readonly caller?: Caller
}

/** Models of an `Llm` for the AI SDK. Called as a function, returns a language model. */
export interface ModelmountProvider extends ProviderV3 {
  (modelId: string): LanguageModelV3
  textEmbeddingModel(modelId: string): EmbeddingModelV3
  rerankingModel(modelId: string): RerankingModelV3
}

/**
 * Creates a provider whose models run in process, without HTTP: `generateText({ model: modelmount('tiny') })`.
 * Throws an `InvalidArgumentError` for unknown settings and for a missing caller. Creating one for each request is cheap.
 */
export function createModelmount(llm: Llm, settings: ModelmountProviderSettings = {}): ModelmountProvider {
  checkSettings(settings)
  const source = (modelId: string): ModelSource => ({
    llm,
    ...settings,
    modelId: checkId(modelId),
  })

  const languageModel = (modelId: string) => createLanguageModel(source(modelId))
  const embeddingModel = (modelId: string) => createEmbeddingModel(source(modelId))
  return Object.assign((modelId: string) => languageModel(modelId), {
    specificationVersion: 'v3',
    languageModel,
    embeddingModel,
    textEmbeddingModel: embeddingModel,
    rerankingModel: (modelId: string) => createRerankingModel(source(modelId)),
    imageModel: (modelId: string): never => {
      throw new NoSuchModelError({ modelId, modelType: 'imageModel' })
    },
  } as const)
}

/** Without these checks, a misspelled or missing caller would run with the rights of the app. */
function checkSettings(settings: object): void {
  for (const [key, value] of Object.entries(settings)) {
    if (key !== 'caller')
      throw invalidArgument(key, 'unknown setting of createModelmount(). The only setting is `caller`.')
    if (typeof value !== 'object' || value === null)
      throw invalidArgument(
        key,
        `expected a caller, got ${value}. For calls of the app itself, leave it out.`,
      )
  }
}

function checkId(modelId: unknown): string {
  if (typeof modelId === 'string' && modelId !== '') return modelId
  throw invalidArgument('modelId', "expected the name of a model, such as 'tiny'.")
}

const invalidArgument = (argument: string, problem: string): InvalidArgumentError =>
  new InvalidArgumentError({ argument, message: `${argument}: ${problem}` })
