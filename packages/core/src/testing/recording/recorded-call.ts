/** The calls of an engine that can be recorded. */

export const engineMethods = [
  'generate',
  'countTokens',
  'render',
  'embed',
  'rerank',
  'tokenize',
  'detokenize',
  'tokenPieces',
  'load',
  'unload',
] as const
export type EngineMethod = (typeof engineMethods)[number]

/** A recorded call without its outcome. Calls with equal fields match. */
export interface RecordedEngineCall {
  readonly method: EngineMethod
  /** The request as JSON, with sorted keys. */
  readonly request: Record<string, unknown>
}
