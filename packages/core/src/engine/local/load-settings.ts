/** Load settings: those of the app, and those that a call needs. */
import type { Model } from '../../models/model.ts'
import type { FindModelSettings, ModelSettings } from '../model-settings.ts'
import type { LoadOptions } from '../request.ts'
import { identifyProcess, type ProcessIdentity } from './identity.ts'
import type { LoadConfig } from './ipc/process-config.ts'
import type { RuntimeDir } from './ipc/runtime-dir.ts'
import type { LoadedProcess } from './loaded-process.ts'
import type { ModelEvent } from './model-events.ts'

/** Load settings of the app. A call may override some of them. */
export interface LocalModelSettings {
  readonly load: Omit<LoadConfig, 'modelPath' | 'modelName' | 'fingerprint' | 'contextSize' | 'adapters'>
  readonly contextSize: number
  /** Whether the app has chosen `contextSize`. */
  readonly isContextSizeChosen: boolean
  /** Settings of single models. */
  readonly settingsOf: FindModelSettings
  /** How long an unused model stays loaded, in milliseconds. */
  readonly keepAlive: number | 'forever'
  /** How long a loaded model serves before a call may reload or evict it, in milliseconds. */
  readonly reloadCooldown: number
  readonly processFile: string
  /** Names of further environment variables that model processes inherit. */
  readonly environment: readonly string[]
  readonly runtimeDir: RuntimeDir
  /** Checks the model file. Throws an `LlmError` `upstream` for a file that would crash the native code. */
  readonly check: (model: Model) => Promise<void>
  /** Whether the model is for embedding or reranking. */
  readonly isPooling: (model: Model) => Promise<boolean>
  /** Called when the model could not be loaded with all of its settings. */
  /** @param model the name of the model */
  readonly warn: (message: string, model: string) => void
  readonly onModelEvent: (event: ModelEvent) => void
}

/** Load settings of a call, and the process that has them. */
export type ResolvedLoad = LoadOptions & {
  readonly contextSize: number
  readonly modelSettings: ModelSettings
  readonly identity: ProcessIdentity
}

export const resolveLoad = (
  model: Model,
  load: LoadOptions,
  contextSize: number,
  settings: LocalModelSettings,
  modelSettings: ModelSettings,
): ResolvedLoad => ({
  ...load,
  contextSize,
  modelSettings,
  identity: identifyProcess(model, { ...toLoadConfig(settings, modelSettings), contextSize }),
})

/** Load settings that are the same for all calls of a model. */
export const toLoadConfig = (
  { load }: LocalModelSettings,
  { parallel = load.parallel, gpuLayers = load.gpuLayers }: ModelSettings,
): LocalModelSettings['load'] => ({ ...load, parallel, gpuLayers })

/**
 * Returns the settings for the name of a model. While the model is loaded under another name, the settings of that
 * name stay, so that calls to both names do not reload it again and again.
 */
export const chooseModelSettings = (
  { name }: Model,
  loaded: LoadedProcess | undefined,
  { settingsOf }: LocalModelSettings,
): ModelSettings => loaded?.modelSettings ?? settingsOf(name)

/**
 * Returns the context size to load. A call without a size gets the default of the Modelfile or the app, or
 * the loaded size if that is larger.
 */
export function resolveContextSize(
  load: LoadOptions,
  loaded: LoadedProcess | undefined,
  settings: LocalModelSettings,
): number {
  const { defaultContextSize = settings.contextSize } = load
  const size = load.contextSize ?? Math.max(defaultContextSize, loaded?.contextSize ?? 0)
  const actual = loaded?.process.footprint?.contextSize ?? Number.POSITIVE_INFINITY
  // The model was trained for a smaller context, so it is already loaded at its maximum.
  return loaded && actual < loaded.contextSize && actual <= size ? loaded.contextSize : size
}

/**
 * How long the loaded model must still serve before this call may reload it, in milliseconds. A call without
 * a context size need not wait: it reloads the model only if another call has loaded a smaller context than
 * the default.
 */
export function getReloadDelayMs(
  { contextSize }: LoadOptions,
  loaded: LoadedProcess | undefined,
  settings: LocalModelSettings,
): number {
  if (contextSize === undefined || loaded?.readyAt === undefined) return 0
  return Math.max(0, loaded.readyAt + settings.reloadCooldown - performance.now())
}
