/** The models of the engines beside those of the store: where they are found and listed, and what cannot change them. */
import type { Engine } from '../../engine/engine.ts'
import type { EngineSet } from '../../engine/engine-set.ts'
import { invalidRequest, modelNotFound } from '../../errors.ts'
import type { Model } from '../../models/model.ts'
import type { ModelFinders } from '../../models/model-resolver.ts'
import type { StoreActions } from './model-actions.ts'

/** Returns the name of the engine with which the name of a model begins. Undefined for a name of the store. */
export type FindEngineName = (model: string) => string | undefined

/**
 * Finds models in the engines and in the store.
 *
 * @param engines undefined if all models have one engine
 */
export const createFinders = (
  engine: Engine,
  engines: EngineSet | undefined,
  models: StoreActions,
): ModelFinders => ({
  find: async (name) => {
    const known = await engine.findModel?.(name)
    if (known) return known
    const model = await models.get(name)
    // The store may know a longer spelling of a name that belongs to an engine.
    if (engines?.engineOf(model.name) !== undefined) throw modelNotFound(name)
    return model
  },
  findInEngines: engines && ((name) => engines.findByBareName(name)),
})

/**
 * Adds the models of the engines to the lists of the store. Actions that change models reject the names of the engines
 * with an `LlmError` `invalid_request`.
 */
export function withEngineModels(
  models: StoreActions,
  engine: Engine,
  engineOf: FindEngineName = () => undefined,
): StoreActions {
  const isOfStore = ({ name }: Model): boolean => engineOf(name) === undefined
  const expectStored = (action: string, ...names: readonly (string | undefined)[]): void => {
    for (const name of names) {
      const owner = name === undefined ? undefined : engineOf(name)
      if (owner !== undefined) throw ofEngine(action, String(name), owner)
    }
  }
  return {
    blobs: models.blobs,
    get: (name) => models.get(name),
    details: (model, options) => models.details(model, options),
    prune: () => models.prune(),
    list: async () => {
      const [stored, others] = await Promise.all([models.list(), engine.listModels?.() ?? []])
      const known = new Set(others.map(({ name }) => name))
      // As in a call, a model of the engine comes before one of the store with the same name.
      return [...stored.filter((model) => isOfStore(model) && !known.has(model.name)), ...others].sort(byName)
    },
    snapshots: async () => (await models.snapshots()).filter(isOfStore),
    copy: async (from, to, options) => {
      expectStored('copied', from)
      expectStored('created', to)
      return models.copy(from, to, options)
    },
    delete: async (name) => {
      expectStored('deleted', name)
      return models.delete(name)
    },
    create: (spec, options) => {
      expectStored('created', spec.name)
      expectStored('copied', spec.from)
      return models.create(spec, options)
    },
    pull: (name, options) => {
      expectStored('pulled', name)
      return models.pull(name, options)
    },
    push: (name, options) => {
      expectStored('pushed', name)
      return models.push(name, options)
    },
  }
}

const byName = (a: Model, b: Model): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)

const ofEngine = (action: string, name: string, engine: string): Error =>
  invalidRequest(
    `"${name.slice(0, 200).toWellFormed()}" is a model of the engine "${engine}", so it cannot be ${action} here.`,
    { param: 'model' },
  )
