/** A model process, and what the app remembers about it. */
import type { ModelSettings } from '../model-settings.ts'
import type { ProcessClient } from './supervisor/process-client.ts'

export interface LoadedProcess {
  /** Name under which the model was loaded. Other names may refer to the same weights. */
  readonly name: string
  readonly digest: string
  readonly fingerprint: string
  readonly contextSize: number
  readonly modelSettings: ModelSettings
  readonly process: ProcessClient
  /** Keep-alive of the last call that set one, in milliseconds. */
  keepAlive: number | 'forever'
  /** Time when the load was complete, on the clock of `performance.now()`. */
  readyAt: number | undefined
  /** Time when the last breakpoint in the prompt cache expires, in milliseconds since 1970. */
  cachedUntil: number
  /** Whether the process is released as soon as it is idle. */
  isUnwanted: boolean
}

/** Runs on a loaded model. `loadMs` is how long the call waited for the load. */
export type LoadedTask<T> = (loaded: LoadedProcess, loadMs: number) => Promise<T>

/** What a call tells and wants to know while its model is loaded. */
export interface CallObserver {
  /** Whether the call has emitted output, so that it cannot be repeated. */
  readonly hasBegun: () => boolean
  /** Called with the loaded part of the model, from 0 to 1. Not called if the model is loaded. */
  readonly onLoadProgress?: ((fraction: number) => void) | undefined
}
