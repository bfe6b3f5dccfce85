/** What happens to the model processes that an app uses. */

/** A model is loaded, and ready for calls. */
export interface ModelLoad {
  readonly type: 'load'
  /** Name of the model with its tag. */
  readonly model: string
  /** Process id of the model process. Undefined if it has ended already. */
  readonly processId: number | undefined
  /** Milliseconds since the app has started the process, or has connected to a running one. */
  readonly loadMs: number
  /** Maximum number of tokens of prompt and output together. */
  readonly contextSize: number
  /** Memory for weights and context, in bytes. */
  readonly sizeBytes: number
  /** Part of `sizeBytes` on a graphics card. */
  readonly gpuBytes: number
  /** Number of layers on a graphics card. */
  readonly gpuLayers: number
  /** How the model was loaded otherwise than the options ask for. */
  readonly notes: readonly string[]
}

/** A model process has ended, or is no longer used by this app. */
export interface ModelEnd {
  /**
   * `unload`: the app no longer needs the model. `evict`: another model needed its place or its memory. `crash`: the
   * process ended by itself, was killed, or was stuck.
   */
  readonly type: 'unload' | 'evict' | 'crash'
  /** Name of the model with its tag. */
  readonly model: string
  /** Process id of the model process. Undefined if it did not start. */
  readonly processId: number | undefined
  /** Such as `it is no longer needed`. Undefined for a process that ended by itself. */
  readonly reason: string | undefined
  /** Milliseconds since the model was loaded. 0 for a process that ended before. */
  readonly loadedMs: number
}

/** A model process has dropped saved states of prompts, of any app that shares it. */
export interface CacheEviction {
  readonly type: 'cache-evict'
  /** Name of the model with its tag. */
  readonly model: string
  /** Why the states were dropped. */
  readonly reason: EvictionReason
  /** Number of dropped states. */
  readonly states: number
  /** Size of the dropped states, in bytes. */
  readonly bytes: number
}

/**
 * `expired`: after their lifetime. `memory`: others needed the room. `deleted`: with their tenant, or because their file is
 * damaged. A state that a better one of the same prompt replaces is not counted.
 */
export type EvictionReason = 'expired' | 'memory' | 'deleted'

export type ModelEvent = ModelLoad | ModelEnd | CacheEviction
