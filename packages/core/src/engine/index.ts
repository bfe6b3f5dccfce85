/** The entry point `@modelmount/core/engine`: the contract of an engine, its requests and its events. */

export { LlmError } from '../errors.ts'
export type { Embeddings, EmbedRequest, Ranking, RerankRequest } from './embeddings.ts'
export type { Engine, EngineCall, LoadedModel } from './engine.ts'
export {
  type ContentEvent,
  type FinishReason,
  type GenerateEvent,
  type GenerationProgress,
  type LoadProgress,
  type OutputTimings,
  type PromptProgress,
  type PromptToken,
  type PromptUsage,
  type SampledToken,
  type Timings,
  type TokenLogprob,
  type TokenUsage,
  type ToolCall,
  uncached,
} from './events.ts'
export type { ModelSettings } from './model-settings.ts'
export type { ReplicaEvent, ReplicaFailure, ReplicaState, ReplicaStatus } from './replicas.ts'
export type {
  CacheLifetime,
  ChatInput,
  DryPenalty,
  ExcludeTop,
  GenerateRequest,
  ImagePart,
  InfillInput,
  LoadOptions,
  Message,
  OutputFormat,
  Part,
  PromptEnd,
  Sampling,
  TextInput,
  Tool,
  ToolChoice,
} from './request.ts'
export { toTemplateMessages } from './request-input.ts'
export type { DetokenizeRequest, TokenizeRequest, TokenPiece } from './tokens.ts'
