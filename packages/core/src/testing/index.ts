/** Package entry point `@modelmount/core/testing`, to test an app without a model. */
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
