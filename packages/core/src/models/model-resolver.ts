/** Finds the model that a client asks for, by its name or by an alias. */
import { LlmError, type LlmErrorCode, modelNotFound } from '../errors.ts'
import type { Model } from './model.ts'
import type { Alias, ModelAliases } from './model-aliases.ts'
import { modelNotAllowed } from './model-filter.ts'

export interface ResolvedModel {
  /** Name of the model, or the target of the alias. The requested name if neither is known. */
  readonly name: string
  /** Undefined if the store does not contain the model. It may exist in a custom engine. */
  readonly model: Model | undefined
  /** The requested name, if it is an alias of the model, the id of a snapshot, or another name of an engine's model. */
  readonly alias?: string
  /** Names of the models that a call uses if this one fails before its first event, in this order. */
  readonly fallbacks?: readonly string[]
}

/** An alias whose model exists. */
export interface AliasedModel {
  readonly alias: string
  readonly model: Model
}

/** Where the resolver looks for a model. */
export interface ModelFinders {
  /** Rejects with an `LlmError` `not_found` for an unknown name. */
  readonly find: (name: string) => Promise<Model>
  /** Looks for a name without the name of its engine. Undefined if all models have one engine. */
  readonly findInEngines?: ((name: string) => Promise<Model | undefined>) | undefined
}

export class ModelResolver {
  readonly #aliases: ModelAliases
  readonly #finders: ModelFinders

  constructor(aliases: ModelAliases, finders: ModelFinders) {
    this.#aliases = aliases
    this.#finders = finders
  }

  /**
   * A model with exactly the requested name comes before an alias, and an alias before a model of an engine whose name
   * the request leaves out. Rejects if the model is damaged.
   */
  async resolve(name: string): Promise<ResolvedModel> {
    const { find, findInEngines = async () => undefined } = this.#finders
    const model = await tryFind(find, name)
    if (model) return { name: model.name, model, ...(isOtherName(name, model) && { alias: name }) }
    const targets = this.#aliases.targetsOf(name)
    if (targets) return this.resolveTargets(name, targets)
    const other = await findInEngines(name)
    return other ? { name: other.name, model: other, alias: name } : { name, model: undefined }
  }

  /** Finds the first model that exists. The others after it are its fallbacks. */
  async resolveTargets(alias: string, targets: readonly string[]): Promise<ResolvedModel> {
    for (const [index, target] of targets.entries()) {
      const isOnly = targets.length === 1
      const model = await tryFind(this.#finders.find, target).catch((cause: unknown) => {
        if (isOnly || !hasFallbackCode(cause)) throw cause
        return undefined
      })
      if (model) return { name: model.name, model, alias, fallbacks: targets.slice(index + 1) }
    }
    // A custom engine may know models that the store does not know.
    const [name = alias, ...fallbacks] = targets
    return { name, model: undefined, alias, fallbacks }
  }

  /** Aliases without `*` whose models exist. An alias with the name of a model is left out. */
  async listAliases(): Promise<readonly AliasedModel[]> {
    const resolve = async ({ alias }: Alias): Promise<readonly AliasedModel[]> => {
      const resolved = await this.resolve(alias).catch(() => undefined)
      return resolved?.alias !== undefined && resolved.model ? [{ alias, model: resolved.model }] : []
    }
    return (await Promise.all(this.#aliases.list().map(resolve))).flat()
  }
}

const fallbackCodes: readonly LlmErrorCode[] = ['not_found', 'overloaded', 'unavailable', 'upstream']

/** Whether another model may answer a call that has failed with this error. */
export const hasFallbackCode = (cause: unknown): boolean =>
  LlmError.is(cause) && fallbackCodes.includes(cause.code)

/** Whether only the full name of the model decides about prices, limits and permissions. */
const isOtherName = (name: string, { name: fullName, engine, snapshot }: Model): boolean =>
  snapshot !== undefined || (engine !== undefined && name !== fullName)

async function tryFind(find: (name: string) => Promise<Model>, name: string): Promise<Model | undefined> {
  try {
    return await find(name)
  } catch (cause) {
    if (LlmError.from(cause).code !== 'not_found') throw cause
    return undefined
  }
}

/**
 * Resolves a name for a caller. A forbidden name gets the same error, whether or not the model exists, so that errors
 * do not reveal which models exist.
 */
export async function resolveAllowed(
  name: string,
  resolve: ModelResolver['resolve'],
  isAllowed: (name: string) => boolean,
): Promise<ResolvedModel> {
  const resolved = await resolve(name).catch((cause: unknown) => {
    throw isAllowed(name) ? cause : modelNotAllowed(name)
  })
  // A custom engine may know another model by a spelling that the store ignores, such as the tag `local`.
  if (!isAllowed(resolved.alias === undefined ? name : resolved.name)) throw modelNotAllowed(name)
  return resolved
}

/** Throws an `LlmError` `not_found` if the store does not contain the model. */
export function expectModel({ name, model, alias }: ResolvedModel): Model {
  if (model) return model
  throw modelNotFound(name, alias)
}
