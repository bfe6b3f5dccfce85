/** Package entry point `@modelmount/core/testing`, for tests of an app without a model. */
export { readEvents, type ServerSentEvent } from './read-events.ts'
export {
  type Script,
  type ScriptedAnswer,
  type ScriptedChunk,
  type ScriptedEngine,
  type ScriptedEngineOptions,
  type ScriptedToolCall,
  scriptedEngine,
} from './scripted-engine.ts'
