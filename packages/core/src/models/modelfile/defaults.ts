/** Modelfile defaults, and how they are applied to a request. */
import type { GenerateRequest, Message } from '../../engine/request.ts'
import type { ModelConfig } from '../ollama-store/manifest.ts'
import { parseParameters, toContextSize, toSampling, toStops } from './parameters.ts'

/** What the Modelfile of a model says. It applies where a call sets nothing. */
export interface ModelfileDefaults {
  /** Go template that replaces the chat template of the GGUF file. */
  readonly template?: string
  /** System message of conversations without one. */
  readonly system?: string
  /**
   * Parameters by their Ollama names: `{ temperature: 0, stop: ['</s>'] }`. The values are validated at
   * every request.
   */
  readonly parameters: Readonly<Record<string, unknown>>
  /** Messages at the start of every conversation. */
  readonly messages: readonly ModelfileMessage[]
  /** Texts of licences. Empty without any. */
  readonly license: readonly string[]
}

/** The line `MESSAGE` of a Modelfile: an example for the model. */
export interface ModelfileMessage {
  /** Role of the author, such as `user`. */
  readonly role: string
  /** The text of the message. */
  readonly content: string
}

/** Stands for "no template" in a rendered Modelfile. Creating a model ignores a template with this text. */
export const placeholderTemplate = '{{ .Prompt }}'

/** Defaults of a standalone GGUF file. */
export const emptyDefaults: ModelfileDefaults = { parameters: {}, messages: [], license: [] }

/**
 * Drops the Go template if the model's configuration has a `renderer`, or if the model is gpt-oss, whose Go
 * template does not match its output. Such models use the chat template of the GGUF file instead.
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
 * Fills missing values of a request from the Modelfile, and then from the defaults of the dialect. Invalid
 * parameters are ignored. Each result has a new `input` object, so that engines can tell calls apart.
 * @param maxContextSize upper limit of the context size that a Modelfile can set, in tokens
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
  const isSizeOpen = ownSize !== undefined && request.load?.contextSize === undefined
  const sampling = { ...defaultSampling, ...toSampling(parameters), ...request.sampling }
  return {
    ...request,
    input: applyMessages(request.input, defaults),
    ...(maxTokens !== undefined && { maxTokens }),
    ...(stop && { stop }),
    ...(Object.keys(sampling).length > 0 && { sampling }),
    ...(isSizeOpen && {
      load: { ...request.load, defaultContextSize: Math.min(ownSize, maxContextSize) },
    }),
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
      if (input.template === false) return { ...input }
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
