/** The entry point `@modelmount/core/diagnostics`: the events of `node:diagnostics_channel`. */

export type { ModelEnd, ModelLoad } from '../engine/local/model-events.ts'
export { type DiagnosticListeners, subscribe } from './channels.ts'
export type {
  CacheEvent,
  CallAdmitted,
  CallEnded,
  CallFailed,
  CallFirstToken,
  CallOver,
  CallStarted,
  DiagnosedCall,
  DiagnosticEvents,
  LimitRefused,
  OfLlm,
} from './events.ts'
