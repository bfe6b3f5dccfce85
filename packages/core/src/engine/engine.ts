/** The contract of everything that makes tokens. */
import type { GenerateEvent } from './events.ts'
import type { GenerateRequest } from './request.ts'

export interface Engine {
  /**
   * Streams one answer. Ends early, without an error, when `call.signal` aborts.
   * Throws `LlmError` only: `invalid_request`, `not_found`, `context_length`, `overloaded`, `upstream`.
   */
  generate(request: GenerateRequest, call: EngineCall): AsyncIterable<GenerateEvent>
  /**
   * How many tokens the prompt of `request` has, also when they are more than the context holds.
   * Rejects with an `AbortError` when `call.signal` aborts. Throws `LlmError` only, like `generate`.
   */
  countTokens(request: GenerateRequest, call: EngineCall): Promise<number>
  loaded(): readonly LoadedModel[]
  /** Ends running answers and frees everything. */
  close(): Promise<void>
}

export interface EngineCall {
  readonly signal: AbortSignal
}

export interface LoadedModel {
  readonly name: string
  readonly state: 'loading' | 'ready'
  /** The process that holds it, where there is one. */
  readonly processId?: number | undefined
  /** Tokens that a prompt and its answer may have together; 0 until it is known. */
  readonly contextSize: number
}
