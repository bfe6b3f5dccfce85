/** The entry point `@modelmount/core` for host apps. */
export type { AccessOptions } from './accounts/auth/access.ts'
export type { Caller, Scope } from './accounts/auth/caller.ts'
export type { ApiKey, Keys, KeyWithSecret } from './accounts/keys/keys.ts'
export type { LimitRequest } from './accounts/keys/limit-requests.ts'
export type { KeyChanges, KeySettings } from './accounts/keys/settings.ts'
export type { SpendingLimit } from './accounts/spending-limit.ts'
export type { UsageReports } from './accounts/usage/open-metering.ts'
export type { Prices } from './accounts/usage/pricing.ts'
export type { CallRow, UsageQuery, UsageRow } from './accounts/usage/report.ts'
export type { SpendingWarning } from './accounts/usage/warnings.ts'
export type { CallerLlm } from './calls/app-calls.ts'
export type { CallOptions, UnaryCallOptions } from './calls/call.ts'
export type { ChatOptions, ChatToolChoice } from './calls/chat/chat-options.ts'
export type { ChatStream } from './calls/chat/chat-stream.ts'
export type { JsonSchema } from './calls/chat/json-schema.ts'
export type { ChatMessage, ChatPrompt, ChatToolCall, ToolMessage } from './calls/chat/messages.ts'
export { jsonSchema, type OutputSchema, type PartialObject } from './calls/chat/output-schema.ts'
export type { ChatResult, ChatStep, ObjectPiece, ObjectResult } from './calls/chat/result.ts'
export type { StandardSchema } from './calls/chat/standard-schema.ts'
export type { ChatTool, ToolContext } from './calls/chat/tools.ts'
export type { Generation } from './calls/generation.ts'
export { createLlm } from './create-llm.ts'
export { adminRoutes, type DialectName, routesFor } from './dialects/index.ts'
export {
  type ContentEvent,
  collect,
  type FinishReason,
  type GenerateEvent,
  type GenerateResult,
  type PromptUsage,
  type Timings,
  type TokenUsage,
  type ToolCall,
} from './engine/events.ts'
export type { GenerateRequest, Message, Part, Sampling, Tool, ToolChoice } from './engine/request.ts'
export { LlmError, type LlmErrorCode, type LlmErrorDetails } from './errors.ts'
export type { Llm } from './llm.ts'
export type { Logger } from './logger.ts'
export type { CloseOptions } from './options/close.ts'
export type { LiveOptions } from './options/live.ts'
export type { LocalOptions } from './options/local.ts'
export type { UsageOptions } from './options/metering.ts'
export type { ModelOptions } from './options/model-settings.ts'
export type { AdaptedModel } from './options/models.ts'
export type { StoreOptions } from './options/store.ts'
export { checkOptions, type LlmOptions } from './options.ts'
export type { DatabaseLocation } from './storage/open.ts'
export type { ByteSize, Duration } from './units.ts'
