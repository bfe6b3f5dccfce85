/** What a model is beside its weights, as a Modelfile says it, and how that becomes part of what is asked of it. */
import type { GenerateRequest, Message } from '../../engine/request.ts'
import type { ModelConfig } from '../ollama-store/manifest.ts'
import { parseParameters, toContextSize, toSampling, toStops } from './parameters.ts'

export interface ModelfileDefaults {
  /** In Go's template language; it wins over the one in the weights. */
  readonly template?: string
  readonly system?: string
  /** By their names in the Ollama API: `{ temperature: 0, stop: ['</s>'] }`. As they were written, checked where they are used. */
  readonly parameters: Readonly<Record<string, unknown>>
  /** Turns that every conversation begins with. */
  readonly messages: readonly ModelfileMessage[]
  readonly license: readonly string[]
}

export interface ModelfileMessage {
  readonly role: string
  readonly content: string
}

/** It stands where there is no template, and so comes back with a Modelfile that somebody was shown: it is none. */
export const placeholderTemplate = '{{ .Prompt }}'

/** Of a file that lies alone. */
export const emptyDefaults: ModelfileDefaults = { parameters: {}, messages: [], license: [] }

/**
 * Where a renderer is named, the template is for nobody; and that of gpt-oss does not show what its model writes. Both are
 * answered for by the template in the weights.
 */
export function resolveDefaults({
  defaults = emptyDefaults,
  config = {},
}: {
  readonly defaults?: ModelfileDefaults
  readonly config?: ModelConfig
}): ModelfileDefaults {
  const isTemplateFromWeights = config.renderer || /^gpt-?oss$/.test(config.model_family ?? '')
  const { template, ...others } = defaults
  return isTemplateFromWeights || !template ? others : defaults
}

/**
 * The request over the recipe over its defaults. What of the parameters is nonsense is left out.
 * @param maxContextSize a recipe may ask for more tokens than the app allows, and gets those
 */
export function applyDefaults(
  { defaultSampling, defaultMaxTokens, ...request }: GenerateRequest,
  defaults: ModelfileDefaults = emptyDefaults,
  maxContextSize = Number.POSITIVE_INFINITY,
): GenerateRequest {
  const { parameters } = parseParameters(defaults.parameters)
  const { num_predict: limit = defaultMaxTokens ?? 0 } = parameters
  const maxTokens = request.maxTokens ?? (limit > 0 ? limit : undefined)
  const stop = request.stop ?? toStops(parameters)
  const ownSize = toContextSize(parameters)
  const contextSize = request.load?.contextSize ?? (ownSize && Math.min(ownSize, maxContextSize))
  const sampling = { ...defaultSampling, ...toSampling(parameters), ...request.sampling }
  return {
    ...request,
    input: applyMessages(request.input, defaults),
    ...(maxTokens !== undefined && { maxTokens }),
    ...(stop && { stop }),
    ...(Object.keys(sampling).length > 0 && { sampling }),
    ...(contextSize !== undefined && { load: { ...request.load, contextSize } }),
  }
}

function applyMessages(
  input: GenerateRequest['input'],
  { template, system, messages }: ModelfileDefaults,
): GenerateRequest['input'] {
  const ownTemplate = input.template ?? template
  const templated = ownTemplate === undefined ? {} : { template: ownTemplate }
  const turns = messages.map(({ role, content }) => toMessage(role, content))
  switch (input.kind) {
    case 'infill':
      return { ...input, ...(typeof ownTemplate === 'string' && { template: ownTemplate }) }
    case 'text': {
      if (input.template === false) return input
      const hasContextTokens = input.prompt.some((piece) => typeof piece !== 'string')
      const before = input.messages ?? (hasContextTokens ? [] : turns)
      const ownSystem = input.system || system
      return {
        ...input,
        ...templated,
        ...(ownSystem && { system: ownSystem }),
        ...(before.length > 0 && { messages: before }),
      }
    }
    case 'chat': {
      const hasSystemMessage = !system || input.messages[0]?.role === 'system'
      return {
        ...input,
        ...(typeof ownTemplate === 'string' && { template: ownTemplate }),
        messages: [...(hasSystemMessage ? [] : [toMessage('system', system)]), ...turns, ...input.messages],
      }
    }
  }
}

const toMessage = (role: string, text: string): Message => ({ role, content: [{ type: 'text', text }] })
