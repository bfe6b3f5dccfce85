/** The entry point `@modelmount/core/diagnostics`: the events of `node:diagnostics_channel`. */

export type { ModelEnd, ModelLoad } from '../engine/local/model-events.ts'
export { type DiagnosticListeners, subscribe } from './channels.ts'
export type {
  AnswerContent,
  CacheEvent,
  CallAdmitted,
  CallContent,
  CallEnded,
  CallFailed,
  CallFirstToken,
  CallOver,
  CallProgress,
  CallReceived,
  CallRequest,
  CallStarted,
  DiagnosedCall,
  DiagnosticEvents,
  LimitRefused,
  OfLlm,
  RequestEnded,
  ToolEnded,
} from './events.ts'
