/** The entry point `@modelmount/core/diagnostics`: the events of `node:diagnostics_channel`. */

export type {
  BatchCreated,
  BatchEnded,
  BatchItemsEnded,
  BatchStarted,
  ItemCounts,
} from '../batches/batch-event.ts'
export type { CacheEviction, ModelEnd, ModelLoad } from '../engine/local/model-events.ts'
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
  TransferKind,
  TransferProgress,
  WithLlm,
} from './events.ts'
