/** What the Modelfile of a model says of how to ask it goes with every request. */

import type { CallGroup } from '../accounts/usage/metering.ts'
import type { GenerateRequest, LoadOptions } from '../engine/request.ts'
import { LlmError } from '../errors.ts'
import type { Logger } from '../logger.ts'
import { applyDefaults, resolveDefaults } from '../models/modelfile/defaults.ts'
import { parseParameters } from '../models/modelfile/parameters.ts'
import type { Model, ModelStore } from '../models/store.ts'

export interface ModelfileDefaultsOptions {
  /** No request gets a larger context by a recipe. */
  readonly maxContextSize?: number | undefined
  readonly logger?: Logger | undefined
}

export class ModelfileDefaultsResolver {
  readonly #models: Pick<ModelStore, 'get'>
  readonly #options: ModelfileDefaultsOptions
  /** Models whose recipes somebody was warned of. */
  readonly #warned = new Set<string>()
  readonly #together = new WeakMap<CallGroup, Promise<CallGroup>>()

  constructor(models: Pick<ModelStore, 'get'>, options: ModelfileDefaultsOptions) {
    this.#models = models
    this.#options = options
  }

  /** As its recipe wants it; and how the model is called, whichever way its name was written. */
  async prepare(
    request: GenerateRequest,
  ): Promise<{ readonly request: GenerateRequest; readonly model: string }> {
    // An engine of the user's own may know names that are no files here.
    const model = await this.#models.get(request.model).catch(ifNotFound)
    const recipe = model && resolveDefaults(model)
    if (model && recipe) this.#warnOnce(model, recipe.parameters)
    return {
      request: applyDefaults(request, recipe, this.#options.maxContextSize),
      model: model?.name ?? request.model,
    }
  }

  /** How the model is loaded, where nothing else is said. */
  async loadOf(
    model: string,
    load: LoadOptions | undefined,
  ): Promise<{ readonly load: LoadOptions | undefined; readonly model: string }> {
    const prepared = await this.prepare({ model, input: { kind: 'text', prompt: [] }, ...(load && { load }) })
    return { load: prepared.request.load, model: prepared.model }
  }

  /** All parts of one call: the same object for each of them. */
  together(call: CallGroup): Promise<CallGroup> {
    const known = this.#together.get(call)
    if (known) return known
    const prepared = Promise.all(call.requests.map((request) => this.prepare(request)))
    const made = prepared.then((all) => ({ ...call, requests: all.map(({ request }) => request) }))
    this.#together.set(call, made)
    return made
  }

  #warnOnce({ digest, name }: Model, parameters: Readonly<Record<string, unknown>>): void {
    if (this.#warned.has(digest)) return
    this.#warned.add(digest)
    for (const problem of parseParameters(parameters).problems)
      this.#options.logger?.warn({ model: name }, `A parameter of the model is left out: ${problem}`)
  }
}

function ifNotFound(cause: unknown): undefined {
  if (LlmError.from(cause).code !== 'not_found') throw cause
}
