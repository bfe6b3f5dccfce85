/** Settings of the app for single models. */
import type { GenerateRequest, Sampling } from './request.ts'

/** Each field that is set takes the place of the Modelfile's and of the engine's setting. */
export interface ModelSettings {
  /** In tokens. @default not set */
  readonly contextSize?: number
  /** Maximum number of sequences that the model decodes in parallel. @default not set */
  readonly parallel?: number
  /** Number of layers on the GPU, all (`max`), or as many as fit (`auto`). @default not set */
  readonly gpuLayers?: number | 'auto' | 'max'
  /** How long the model stays loaded without calls, in milliseconds. */
  readonly keepAlive?: number | 'forever'
  /** Maximum number of generated tokens of a call that sets none. @default not set */
  readonly maxTokens?: number
  /** Stop sequences of a call that sets none. @default not set */
  readonly stop?: readonly string[]
  /** Sampling options of a call that sets none. @default not set */
  readonly sampling?: Sampling
}

/** Returns the settings of a model by its name. */
export type FindModelSettings = (name: string) => ModelSettings

/** Fills missing values of a request from the settings of its model. */
export function applyModelSettings(request: GenerateRequest, settings: ModelSettings): GenerateRequest {
  const maxTokens = request.maxTokens ?? settings.maxTokens
  const stop = request.stop ?? settings.stop
  const sampling = settings.sampling && { ...settings.sampling, ...request.sampling }
  return {
    ...request,
    ...(maxTokens !== undefined && { maxTokens }),
    ...(stop && { stop }),
    ...(sampling && { sampling }),
  }
}
