/** The `@modelmount/core/testing` door: test an app without a model. */
export { readEvents, type ServerSentEvent } from './read-events.ts'
export {
  type Piece,
  type Say,
  type Script,
  type ScriptedCall,
  type ScriptedEngine,
  type ScriptedEngineOptions,
  scriptedEngine,
} from './scripted-engine.ts'
