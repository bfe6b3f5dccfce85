/** Options of single models. */
import type { ModelSettings } from '../engine/model-settings.ts'
import type { Sampling } from '../engine/request.ts'
import { type Duration, toMs } from '../units.ts'
import { checkInteger, checkKeys, checkObject, parseOption } from './check.ts'
import { checkGpuLayers, maxContext, maxParallel } from './local.ts'

/** Settings of a model. The sampling options are defaults for calls that do not set them. */
export interface ModelOptions extends Sampling {
  /**
   * Context size in tokens, at least 16 and at most `local.maxContextSize`. Calls with the scope `models` may request
   * another size.
   */
  readonly contextSize?: number | undefined
  /** Number of sequences that the model decodes in parallel, from 1 to 256. */
  readonly parallel?: number | undefined
  /** Number of the model's layers on the GPU: see `local.gpuLayers`. */
  readonly gpuLayers?: number | 'auto' | 'max' | undefined
  /** Idle timeout of the loaded model: milliseconds, `'10m'` or `'forever'`. */
  readonly keepAlive?: Duration | 'forever' | undefined
  /** Maximum number of generated tokens of a call that sets none. */
  readonly maxTokens?: number | undefined
  /** Stop sequences of a call that sets none. */
  readonly stop?: readonly string[] | undefined
}

const loadNames = ['contextSize', 'parallel', 'gpuLayers', 'keepAlive', 'maxTokens', 'stop'] as const
const samplingNames = [
  'temperature',
  'topP',
  'topK',
  'minP',
  'seed',
  'repeatPenalty',
  'repeatLastN',
  'presencePenalty',
  'frequencyPenalty',
  'logitBias',
  'dry',
  'xtc',
  'ignoreEos',
  'minTokens',
] as const satisfies readonly (keyof Sampling)[]

/** Checks all options but the ranges of sampling options, `maxTokens` and `stop`, which the engine checks. */
export function resolveModelSettings(
  options: Readonly<Record<string, ModelOptions>> = {},
  maxContextSize: number = maxContext,
): Readonly<Record<string, ModelSettings>> {
  checkObject('modelSettings', options)
  return Object.fromEntries(
    Object.entries(options).map(([entry, settings]) => [
      entry,
      resolveEntry(`modelSettings['${entry}'].`, entry, settings, maxContextSize),
    ]),
  )
}

function resolveEntry(
  group: string,
  entry: string,
  options: ModelOptions,
  maxContextSize: number,
): ModelSettings {
  if (entry.trim() === '' || entry.trim() !== entry)
    throw new TypeError(`Expected \`modelSettings\` to have names of models, or patterns, got '${entry}'`)
  checkKeys(group, options, [...loadNames, ...samplingNames])
  const { contextSize, parallel, gpuLayers, keepAlive, maxTokens, stop, ...sampling } = options
  return omitUndefined({
    contextSize: checkInteger(`${group}contextSize`, contextSize, 16, maxContextSize),
    parallel: checkInteger(`${group}parallel`, parallel, 1, maxParallel),
    gpuLayers: gpuLayers === undefined ? undefined : checkGpuLayers(`${group}gpuLayers`, gpuLayers),
    keepAlive:
      keepAlive === undefined || keepAlive === 'forever'
        ? keepAlive
        : parseOption(`${group}keepAlive`, () => toMs(keepAlive)),
    maxTokens,
    stop,
    sampling: Object.keys(sampling).length > 0 ? omitUndefined(sampling) : undefined,
  })
}

const omitUndefined = <T extends object>(value: T): { [Key in keyof T]: Exclude<T[Key], undefined> } =>
  Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as never
