/** What users import. */
export type { Access, AccessOptions, AuthMode } from './accounts/auth/access.ts'
export type { Caller, Scope, SpendingLimit } from './accounts/auth/caller.ts'
export type { ApiKey, Keys, KeyWithSecret } from './accounts/keys/keys.ts'
export type { LimitRequest, LimitRequests } from './accounts/keys/limit-requests.ts'
export type { Expiry, KeyChanges, KeySettings, LimitRequestInput } from './accounts/keys/settings.ts'
export type { UsageReports } from './accounts/usage/open-metering.ts'
export type { Price, Prices, TokensByKind } from './accounts/usage/pricing.ts'
export type { CallRow, CallsQuery, UsageQuery, UsageRow } from './accounts/usage/report.ts'
export type { SpendingWarning, SpendingWarningOptions } from './accounts/usage/warnings.ts'
export type { CallOptions, UnaryCallOptions } from './calls/call.ts'
export type { ChatOptions, ChatPrompt } from './calls/chat.ts'
export type { ClientCallOptions, ClientUnaryOptions, LlmClient, ModelOptional } from './calls/client.ts'
export type { Generation } from './calls/generation.ts'
export { createLlm } from './create-llm.ts'
export { adminRoutes, type DialectName, dialectNames, routesFor } from './dialects/index.ts'
export {
  type AdminMountOptions,
  checkAdmin,
  checkCaller,
  type Mount,
  type MountOptions,
  prepareAdminMount,
  prepareMount,
} from './dialects/mount.ts'
export type { DialectTable } from './dialects/table.ts'
export type { Embeddings, EmbedRequest, Ranking, RerankRequest } from './engine/embeddings.ts'
export type { Engine, EngineCall, LoadedModel } from './engine/engine.ts'
export {
  type FinishReason,
  type GenerateEvent,
  type GenerateResult,
  type PromptToken,
  type PromptUsage,
  type SampledToken,
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
  type OutputFormat,
  type Part,
  type Sampling,
  type TextInput,
  type Tool,
  type ToolChoice,
  toTemplateMessages,
} from './engine/request.ts'
export type { DetokenizeRequest, TokenizeRequest } from './engine/tokens.ts'
export { type Issue, LlmError, type LlmErrorCode, type LlmErrorDetails } from './errors.ts'
export type { CallerLimits, Llm, WithHeaders } from './llm.ts'
export type { Logger } from './logger.ts'
export type { Capability, ModelDetails } from './models/gguf/details.ts'
export type { Tensor } from './models/gguf/gguf.ts'
export type { Adapter, Model } from './models/model.ts'
export type { CreateModelRequest } from './models/modelfile/create-request.ts'
export type { ModelfileDefaults, ModelfileMessage } from './models/modelfile/defaults.ts'
export { type Modelfile, parseModelfile, printModelfile } from './models/modelfile/modelfile.ts'
export { type Digest, parseDigest } from './models/ollama-store/digest.ts'
export type { ModelConfig } from './models/ollama-store/manifest.ts'
export type { Blobs } from './models/ollama-store/store-contracts.ts'
export type { Progress, TransferOptions } from './models/registry/progress.ts'
export type { LocalOptions } from './options/local.ts'
export type { LimitOptions, UsageOptions } from './options/metering.ts'
export type { AdaptedModel } from './options/models.ts'
export type { StoreOptions } from './options/store.ts'
export type { LlmOptions } from './options.ts'
export type { DatabaseLocation } from './storage/open.ts'
export type { ByteSize, Duration } from './units.ts'
