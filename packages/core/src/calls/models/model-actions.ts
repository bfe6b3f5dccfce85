/** What a client can do with models: the actions of the model store, which find models by aliases, too. */
import type { Model } from '../../models/model.ts'
import { modelNotAllowed } from '../../models/model-filter.ts'
import { type AliasedModel, expectModel, type ModelResolver } from '../../models/model-resolver.ts'
import type { ModelStore } from '../../models/store.ts'

export type StoreActions = Pick<
  ModelStore,
  | 'list'
  | 'snapshots'
  | 'get'
  | 'details'
  | 'create'
  | 'copy'
  | 'delete'
  | 'pull'
  | 'push'
  | 'prune'
  | 'blobs'
>

/** Here, `get` and `details` find models by aliases, too. All other actions take names of models. */
export interface ModelActions extends StoreActions {
  /** Lists the aliases whose models exist, except for patterns. */
  aliases(): Promise<readonly AliasedModel[]>
}

/** Finds models by name or alias. */
export type Resolver = Pick<ModelResolver, 'resolve' | 'listAliases'>

export const withResolver = (models: StoreActions, resolver: Resolver): ModelActions => {
  const get = async (name: string): Promise<Model> => expectModel(await resolver.resolve(name))
  return {
    ...listStoreActions(models),
    get,
    details: async (model, options) =>
      models.details(typeof model === 'string' ? await get(model) : model, options),
    aliases: () => resolver.listAliases(),
  }
}

const listStoreActions = (models: StoreActions): StoreActions => ({
  list: () => models.list(),
  snapshots: () => models.snapshots(),
  get: (name) => models.get(name),
  details: (model, options) => models.details(model, options),
  copy: (from, to, options) => models.copy(from, to, options),
  delete: (name) => models.delete(name),
  create: (spec, options) => models.create(spec, options),
  pull: (name, options) => models.pull(name, options),
  push: (name, options) => models.push(name, options),
  prune: () => models.prune(),
  blobs: models.blobs,
})

/**
 * Restricts the actions to allowed names. Any other name gets the same error, whether or not the model
 * exists, so that errors do not reveal which models exist. `get` is restricted already.
 */
export function restrictModels(models: ModelActions, isAllowed: (name: string) => boolean): ModelActions {
  const expect = (...names: readonly (string | undefined)[]): void => {
    for (const name of names) if (name !== undefined && !isAllowed(name)) throw modelNotAllowed(name)
  }
  return {
    ...models,
    list: async () => (await models.list()).filter(({ name }) => isAllowed(name)),
    snapshots: async () => (await models.snapshots()).filter(({ name }) => isAllowed(name)),
    aliases: async () => (await models.aliases()).filter(({ model }) => isAllowed(model.name)),
    details: async (model, options) => {
      if (typeof model !== 'string') expect(model.name)
      return models.details(model, options)
    },
    copy: async (from, to, options) => {
      expect(from, to)
      return models.copy(from, to, options)
    },
    delete: async (name) => {
      expect(name)
      return models.delete(name)
    },
    create: (spec, options) => {
      expect(spec.name, spec.from)
      return models.create(spec, options)
    },
    pull: (name, options) => {
      expect(name)
      return models.pull(name, options)
    },
    push: (name, options) => {
      expect(name)
      return models.push(name, options)
    },
  }
}
