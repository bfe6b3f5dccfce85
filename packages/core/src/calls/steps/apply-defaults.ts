/** Adds the settings of the app for the model, and its Modelfile defaults, to each request. */
import { applyModelSettings, type FindModelSettings } from '../../engine/model-settings.ts'
import type { GenerateRequest } from '../../engine/request.ts'
import type { Logger } from '../../logger.ts'
import type { Model } from '../../models/model.ts'
import { applyDefaults, resolveDefaults } from '../../models/modelfile/defaults.ts'
import { parseParameters } from '../../models/modelfile/parameters.ts'
import { isGenerateRequest, type ModelRequest } from '../call.ts'
import type { CallStep } from '../step.ts'

export interface DefaultsOptions {
  /** Settings of the app. They come before those of the Modelfile. */
  readonly settingsOf: FindModelSettings
  /** Upper limit of a Modelfile's `num_ctx`, in tokens. */
  readonly maxContextSize?: number | undefined
  readonly logger?: Logger | undefined
}

export function createDefaultsStep({ settingsOf, maxContextSize, logger }: DefaultsOptions): CallStep {
  /** Digests of models whose invalid parameters have been logged. */
  const warned = new Set<string>()
  const warnOnce = ({ digest, name }: Model, parameters: Readonly<Record<string, unknown>>): void => {
    if (warned.has(digest)) return
    warned.add(digest)
    for (const problem of parseParameters(parameters).problems)
      logger?.warn({ model: name }, `ignored a parameter of the Modelfile: ${problem}`)
  }

  return {
    name: 'defaults',
    before(call) {
      const { model } = call
      const defaults = model && !call.hasDefaults ? resolveDefaults(model) : undefined
      if (model && defaults) warnOnce(model, defaults.parameters)
      call.hasDefaults ||= model?.defaults !== undefined
      const settings = settingsOf(call.modelName)
      const complete = (request: GenerateRequest): GenerateRequest => {
        const completed = applyDefaults(applyModelSettings(request, settings), defaults, maxContextSize)
        const { contextSize: defaultContextSize } = settings
        if (defaultContextSize === undefined || completed.load?.contextSize !== undefined) return completed
        return { ...completed, load: { ...completed.load, defaultContextSize } }
      }
      call.requests = call.requests.map((request): ModelRequest => {
        if (isGenerateRequest(request)) return complete(request)
        const { load } = request
        const empty = {
          model: request.model,
          input: { kind: 'text', prompt: [] },
          ...(load && { load }),
        } as const
        const completed = complete(empty)
        return { ...request, ...(completed.load && { load: completed.load }) }
      })
    },
  }
}
