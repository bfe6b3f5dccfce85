/** Makes the paths in a configuration file relative to the file. */
import { resolve } from 'node:path'
import type { AdaptedModel, LlmOptions } from '@modelmount/core'

/** Every option of `createLlm()` that contains paths is listed here. Values of wrong types stay for core's checks. */
export function resolvePaths(options: LlmOptions, folder: string): LlmOptions {
  const path = <Value>(value: Value): Value =>
    typeof value === 'string' && isRelative(value) ? (resolve(folder, value) as Value & string) : value
  const model = (given: string | AdaptedModel): string | AdaptedModel =>
    isObject(given)
      ? {
          ...given,
          file: path(given.file),
          adapters: mapList(given.adapters, (adapter) =>
            isObject(adapter) ? { ...adapter, file: path(adapter.file) } : adapter,
          ),
        }
      : path(given)
  const { models, database, batches, local, store } = options
  return {
    ...options,
    ...(models !== undefined && {
      models: typeof models === 'string' ? path(models) : mapList(models, model),
    }),
    ...(database !== undefined && { database: path(database) }),
    ...(isObject(batches) && { batches: { ...batches, database: path(batches.database) } }),
    ...(isObject(store) && { store: { ...store, credentials: path(store.credentials) } }),
    ...(isObject(local) && {
      local: {
        ...local,
        modelProcessPath: path(local.modelProcessPath),
        runtimeDir: path(local.runtimeDir),
      },
    }),
  }
}

/** False for URLs, for `:memory:`, and for paths that begin with `~`, which core expands. */
const isRelative = (path: string): boolean => !/^(?:~|:memory:$|\w+:\/\/|$)/.test(path)

const isObject = <Value>(value: Value): value is Value & object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const mapList = <Item>(list: readonly Item[], map: (item: Item) => Item): readonly Item[] =>
  Array.isArray(list) ? list.map(map) : list
