/** What users import. */
export type { Access, AccessOptions } from './access.ts'
export type { Caller, Scope } from './caller.ts'
export { type DialectName, dialectNames, routesFor } from './dialects/index.ts'
export type { DialectTable } from './dialects/table.ts'
export type { Embeddings, EmbedRequest, Ranking, RerankRequest } from './engine/embeddings.ts'
export type { Engine, EngineCall, LoadedModel } from './engine/engine.ts'
export {
  type Answer,
  type DrawnToken,
  type FinishReason,
  type GenerateEvent,
  type PromptToken,
  type PromptUsage,
  type Timings,
  type TokenLogprob,
  type TokenUsage,
  type ToolCall,
  uncached,
} from './engine/events.ts'
export {
  type CacheLifetime,
  type ChatInput,
  type DryPenalty,
  type ExcludeTop,
  type GenerateRequest,
  type InfillInput,
  type LoadOptions,
  type Message,
  messagesOf,
  type OutputFormat,
  type Part,
  type Sampling,
  type TextInput,
  type Tool,
  type ToolChoice,
} from './engine/request.ts'
export type { DetokenizeRequest, TokenizeRequest } from './engine/tokens.ts'
export { type Issue, LlmError, type LlmErrorCode, type LlmErrorDetails } from './errors.ts'
export type { CallOptions, Generation } from './generate.ts'
export {
  type ChatOptions,
  type ChatPrompt,
  createLlm,
  type Llm,
  type ModelOptional,
  type QuietCall,
} from './llm.ts'
export type { Logger } from './logger.ts'
export type { CreateModel } from './models/create.ts'
export type { Capability, ModelDetails } from './models/details.ts'
export type { Tensor } from './models/gguf.ts'
export { type Modelfile, parseModelfile, printModelfile } from './models/modelfile.ts'
export type { Progress, TransferOptions } from './models/progress.ts'
export type { Recipe } from './models/recipe.ts'
export type { Model } from './models/store.ts'
export { type Mount, type MountOptions, prepareMount } from './mount.ts'
export type { AdaptedModel, LlmOptions, LocalOptions, StoreOptions } from './options.ts'
export type { ByteSize, Duration } from './units.ts'
