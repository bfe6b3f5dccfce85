/** Package entry point `@modelmount/core/testing`, to test an app without a model. */

export { readEvents, type ServerSentEvent } from './read-events.ts'
export {
  type RecordingEngine,
  type RecordingOptions,
  recordingEngine,
} from './recording/recording-engine.ts'
export {
  type Script,
  type ScriptedAnswer,
  type ScriptedChunk,
  type ScriptedEngine,
  type ScriptedEngineOptions,
  type ScriptedToolCall,
  scriptedEngine,
} from './scripted-engine.ts'
