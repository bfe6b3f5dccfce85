/** Checks the option `models`: folders, files, and files with LoRA adapters. */
import { resolve } from 'node:path'
import { checkKeys, expandHome } from './check.ts'

/** A model with LoRA adapters. */
export interface AdaptedModel {
  /** Name of the model. `pirate` means `pirate:latest`. */
  readonly name: string
  /** The GGUF file of the model that the adapters were trained for. */
  readonly file: string
  /** LoRA adapters as GGUF files. All of them are applied together. */
  readonly adapters: readonly {
    readonly file: string
    /** Weight of the adapter. @default 1 */
    readonly scale?: number
  }[]
}

export type ModelLocations = readonly (string | AdaptedModel)[]

/** @param defaultFolder path of the folder that is used if `given` is undefined */
export function resolveModels(
  given: string | ModelLocations | undefined,
  defaultFolder: string,
): ModelLocations {
  const models = (given === undefined ? [defaultFolder] : toModelList(given)).map(expandModelHome)
  for (const model of models) if (typeof model !== 'string') rejectDuplicateAdapters(model)
  return models
}

function toModelList(models: string | ModelLocations): ModelLocations {
  const list: readonly unknown[] = Array.isArray(models) ? models : [models]
  if (list.every((one) => isText(one) || isAdapted(one))) return list as ModelLocations
  throw new TypeError(
    `Expected \`models\` to be a path or a list of paths and of { name, file, adapters: [{ file, scale }] }, got ${JSON.stringify(models)}`,
  )
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''

function isAdapted(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  checkKeys('models[].', value, ['name', 'file', 'adapters'])
  const { name, file, adapters } = value as Partial<AdaptedModel>
  return isText(name) && isText(file) && Array.isArray(adapters) && adapters.every(isAdapter)
}

function isAdapter(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  checkKeys('models[].adapters[].', value, ['file', 'scale'])
  const { file, scale = 1 } = value as AdaptedModel['adapters'][number]
  return isText(file) && Number.isFinite(scale)
}

const expandModelHome = (given: string | AdaptedModel): string | AdaptedModel =>
  typeof given === 'string'
    ? expandHome(given)
    : {
        ...given,
        file: expandHome(given.file),
        adapters: given.adapters.map((adapter) => ({ ...adapter, file: expandHome(adapter.file) })),
      }

/** Rejects an adapter that is named twice, because the engine would silently use only its last scale. */
function rejectDuplicateAdapters({ name, adapters }: AdaptedModel): void {
  const files = adapters.map(({ file }) => resolve(file))
  const duplicate = files.find((file, index) => files.indexOf(file) !== index)
  if (duplicate === undefined) return
  throw new TypeError(
    `Expected the adapters of the model "${name}" to be different files, but ${duplicate} is named twice`,
  )
}
