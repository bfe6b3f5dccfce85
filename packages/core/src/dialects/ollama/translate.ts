/** Translates requests of the Ollama API to engine requests. */
import type * as neutral from '../../engine/request.ts'
import { isRaw } from '../../engine/request-input.ts'
import { unlimitedTokens } from '../../engine/request-limits.ts'
import { invalidRequest } from '../../errors.ts'
import type { Capability, ModelDetails } from '../../models/gguf/model-details.ts'
import {
  defaultOllamaSampling,
  toContextSize,
  toSampling,
  toStops,
} from '../../models/modelfile/parameters.ts'
import { fullName, parseModelName } from '../../models/ollama-store/name.ts'
import { toProgressOptions } from '../answer-progress.ts'
import { omitUndefined } from '../fields.ts'
import type * as schema from './schema.ts'

export function toPrompt(body: schema.OllamaGenerateRequest): neutral.TextInput | neutral.InfillInput {
  const { prompt = '', suffix, system, template, context, images = [], raw = false } = body
  const isContinued = context !== undefined && context.length > 0
  if (raw && (system || template || isContinued))
    throw invalidRequest('raw mode does not support template, system, or context')
  if (images.length > 0 && (raw || suffix))
    throw invalidRequest('images are not supported together with raw mode or a suffix', {
      ...{ param: 'images', issue: 'unsupported' },
    })
  if (suffix) return { kind: 'infill', prefix: prompt, suffix, ...(template && { template }) }
  return {
    kind: 'text',
    prompt: [...(isContinued ? [context] : []), prompt],
    ...(images.length > 0 && { images: images.map((data, at) => toImage(data, `images[${at}]`)) }),
    ...(system && { system }),
    // `context` contains the tokens of the conversation so far, with the Modelfile's messages.
    ...(context && !raw && { messages: [] }),
    ...(raw ? { template: false } : template && { template }),
  }
}

export function toChatInput({
  messages = [],
  tools = [],
}: Pick<schema.ChatRequest, 'messages' | 'tools'>): neutral.ChatInput {
  const callIds = new ToolCallIds()
  return {
    kind: 'chat',
    messages: messages.map((message, at) => toMessage(message, `messages[${at}].images`, callIds)),
    ...(tools.length > 0 && { tools: tools.map(toTool) }),
  }
}

const toImage = (data: string, param: string): neutral.ImagePart => ({
  ...{ type: 'image', mediaType: '', data, param },
})

/** @param path path of the images in the request */
function toMessage(message: schema.OllamaMessage, path: string, callIds: ToolCallIds): neutral.Message {
  const { role = 'user', content = '', thinking, tool_calls: toolCalls = [] } = message
  const images = (message.images ?? []).map((data, at) => toImage(data, `${path}[${at}]`))
  const text = { type: 'text', text: content } as const
  if (role !== 'assistant') callIds.endTurn()
  if (role === 'tool')
    return {
      role,
      content: [{ type: 'tool-result', ...callIds.resolve(message), content: [text, ...images] }],
    }
  return {
    role: role === 'developer' ? 'system' : role,
    content: [
      ...(thinking ? [{ type: 'reasoning', text: thinking } as const] : []),
      ...(content !== '' || toolCalls.length === 0 ? [text] : []),
      ...images,
      ...toolCalls.map(({ id, function: { name, arguments: values = {} } }) => ({
        type: 'tool-call' as const,
        id: callIds.register(name, id),
        name,
        arguments: JSON.stringify(values),
      })),
    ],
  }
}

/**
 * Assigns tool results to tool calls, since few clients send ids. A result without a name belongs to the
 * first unanswered tool call. A result with a name belongs to the first unanswered tool call of this name.
 */
class ToolCallIds {
  #count = 0
  /**
   * Maps the id of each unanswered tool call to the name of its tool. This map and `#idsByName` keep lookups
   * fast: a hostile conversation may have ten thousand results for a hundred thousand tool calls.
   */
  readonly #pending = new Map<string, string>()
  readonly #idsByName = new Map<string, Set<string>>()
  #isTurnOver = false

  register(name: string, ownId?: string): string {
    if (this.#isTurnOver) {
      this.#pending.clear()
      this.#idsByName.clear()
    }
    this.#isTurnOver = false
    const id = ownId || `call_${this.#count++}`
    this.#pending.set(id, name)
    this.#idsByName.set(name, (this.#idsByName.get(name) ?? new Set()).add(id))
    return id
  }

  /** Ends a turn. The next registered tool call then discards the unanswered tool calls of this turn. */
  endTurn(): void {
    this.#isTurnOver = true
  }

  /**
   * Finds the tool call of a tool result. If the result contains an id or name, returns this id or name, even
   * if no tool call has it.
   */
  resolve({ tool_call_id: ownId, tool_name: ownName }: schema.OllamaMessage): { id?: string; name?: string } {
    const [next] = (ownName ? this.#idsByName.get(ownName) : this.#pending.keys()) ?? []
    const id = ownId || next
    const name = id === undefined ? undefined : this.#pending.get(id)
    if (id !== undefined && name !== undefined) {
      this.#pending.delete(id)
      this.#idsByName.get(name)?.delete(id)
    }
    return omitUndefined({ id, name: ownName || name })
  }
}

const toTool = ({ function: { name, description, parameters } }: schema.OllamaTool): neutral.Tool => ({
  name,
  ...(description && { description }),
  parameters: parameters ?? { type: 'object', properties: {} },
})

/** @param details details of the model, if known */
export function toGenerateRequest(
  body: schema.OllamaGenerateRequest | schema.ChatRequest,
  input: neutral.GenerateRequest['input'],
  details: ModelDetails | undefined,
): neutral.GenerateRequest {
  const { model = '', options = {}, truncate = true, format, logprobs, top_logprobs: alternatives } = body
  const { num_predict: limit } = options
  const stop = toStops(options)
  const reasoning = toReasoning(body, details)
  const lacks = (capability: Capability): boolean => details?.capabilities.includes(capability) === false
  if (input.kind === 'chat' && input.tools && lacks('tools'))
    throw invalidRequest(`${toQualifiedName(model)} does not support tools`, { param: 'tools' })
  // The capability describes the model's own template. A template in the request may support insertion.
  if (input.kind === 'infill' && input.template === undefined && lacks('insert'))
    throw invalidRequest(`${toQualifiedName(model)} does not support insert`, { param: 'suffix' })
  return {
    model,
    input: isRaw(input) ? input : { ...input, ...toEffort(body, details) },
    // A negative limit means no limit, and overrides the limit of the Modelfile.
    ...(limit !== undefined && { maxTokens: limit > 0 ? limit : unlimitedTokens }),
    ...(stop && { stop }),
    sampling: toSampling(options),
    defaultSampling: defaultOllamaSampling,
    // The output of a raw prompt is not parsed for reasoning.
    ...(reasoning !== undefined && !isRaw(input) && { reasoning }),
    ...(format && { format: toFormat(format) }),
    ...(logprobs && { logprobs: alternatives ?? 0 }),
    overflow: truncate ? 'truncate' : 'error',
    load: toLoad(body),
    ...toProgressOptions(body, body.stream ?? true),
  }
}

/** The full name of a model, as in Ollama's error messages. */
function toQualifiedName(model: string): string {
  const name = parseModelName(model)
  return name ? fullName(name) : `"${model}"`
}

const toFormat = (format: 'json' | object): neutral.OutputFormat =>
  format === 'json' ? { type: 'json' } : { type: 'json-schema', schema: format as object }

export const toLoad = ({
  options = {},
  keep_alive: keepAlive,
}: Pick<schema.ChatRequest, 'options' | 'keep_alive'>): neutral.LoadOptions =>
  omitUndefined({ contextSize: toContextSize(options), keepAlive })

/** Enables reasoning for models that support it, unless `think` is false. */
function toReasoning(
  { model, think }: Pick<schema.ChatRequest, 'model' | 'think'>,
  details: ModelDetails | undefined,
): boolean | undefined {
  if (!details) return think === undefined ? undefined : think !== false
  if (details.capabilities.includes('thinking')) return think !== false
  if (!think) return undefined
  throw invalidRequest(`"${model}" does not support thinking`, { param: 'think' })
}

/** Reasoning effort, for chat templates that use it. The highest effort of gpt-oss is `high`. */
function toEffort(
  { think }: Pick<schema.ChatRequest, 'think'>,
  details: ModelDetails | undefined,
): Pick<neutral.ChatInput, 'templateOptions'> {
  if (typeof think !== 'string') return {}
  const isCapped = think === 'max' && /^gpt-?oss$/.test(details?.architecture ?? '')
  return { templateOptions: { reasoning_effort: isCapped ? 'high' : think } }
}
