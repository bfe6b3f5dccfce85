/** From the Ollama API to the neutral language. */
import type * as neutral from '../../engine/request.ts'
import { isRaw, limits } from '../../engine/request.ts'
import { invalidRequest } from '../../errors.ts'
import type { Capability, ModelDetails } from '../../models/gguf/details.ts'
import { ollamaSampling, toContextSize, toSampling, toStops } from '../../models/modelfile/parameters.ts'
import { fullName, parseModelName } from '../../models/ollama-store/name.ts'
import { given } from '../fields.ts'
import type * as schema from './schema.ts'

export function toPrompt(body: schema.GenerateRequest): neutral.TextInput | neutral.InfillInput {
  const { prompt = '', suffix, system, template, context, raw = false } = body
  const isContinued = context !== undefined && context.length > 0
  if (raw && (system || template || isContinued))
    throw invalidRequest('raw mode does not support template, system, or context')
  if (suffix) return { kind: 'infill', prefix: prompt, suffix, ...(template && { template }) }
  return {
    kind: 'text',
    prompt: [...(isContinued ? [context] : []), prompt],
    ...(system && { system }),
    // What a conversation begins with was in the answer that the context is from.
    ...(context && !raw && { messages: [] }),
    ...(raw ? { template: false } : template && { template }),
  }
}

export function toConversation({
  messages = [],
  tools = [],
}: Pick<schema.ChatRequest, 'messages' | 'tools'>): neutral.ChatInput {
  const calls = new Calls()
  return {
    kind: 'chat',
    messages: messages.map((message) => toMessage(message, calls)),
    ...(tools.length > 0 && { tools: tools.map(toTool) }),
  }
}

function toMessage(message: schema.Message, calls: Calls): neutral.Message {
  const { role = 'user', content = '', thinking, tool_calls: made = [] } = message
  const text = { type: 'text', text: content } as const
  if (role !== 'assistant') calls.end()
  if (role === 'tool')
    return { role, content: [{ type: 'tool-result', ...calls.answered(message), content: [text] }] }
  return {
    role: role === 'developer' ? 'system' : role,
    content: [
      ...(thinking ? [{ type: 'reasoning', text: thinking } as const] : []),
      ...(content !== '' || made.length === 0 ? [text] : []),
      ...made.map(({ id, function: { name, arguments: values = {} } }) => ({
        type: 'tool-call' as const,
        id: calls.made(name, id),
        name,
        arguments: JSON.stringify(values),
      })),
    ],
  }
}

/** Few clients of this API send ids: a result is of the first call that waits for one, and has its name if it says one. */
class Calls {
  #count = 0
  /** Names by ids, and ids by names. A hostile conversation has ten thousand results for a hundred thousand calls. */
  readonly #waiting = new Map<string, string>()
  readonly #named = new Map<string, Set<string>>()
  #isOver = false

  made(name: string, ownId?: string): string {
    if (this.#isOver) {
      this.#waiting.clear()
      this.#named.clear()
    }
    this.#isOver = false
    const id = ownId || `call_${this.#count++}`
    this.#waiting.set(id, name)
    this.#named.set(name, (this.#named.get(name) ?? new Set()).add(id))
    return id
  }

  /** Something else was said: what still waits when the next call is made waits in vain. */
  end(): void {
    this.#isOver = true
  }

  /** Which one: what the result says itself is right, also where there is no such call. */
  answered({ tool_call_id: ownId, tool_name: ownName }: schema.Message): { id?: string; name?: string } {
    const [next] = (ownName ? this.#named.get(ownName) : this.#waiting.keys()) ?? []
    const id = ownId || next
    const name = id === undefined ? undefined : this.#waiting.get(id)
    if (id !== undefined && name !== undefined) {
      this.#waiting.delete(id)
      this.#named.get(name)?.delete(id)
    }
    return given({ id, name: ownName || name })
  }
}

const toTool = ({ function: { name, description, parameters } }: schema.Tool): neutral.Tool => ({
  name,
  ...(description && { description }),
  parameters: parameters ?? { type: 'object', properties: {} },
})

/** @param details of the model, where they are known */
export function toGenerateRequest(
  body: schema.GenerateRequest | schema.ChatRequest,
  input: neutral.GenerateRequest['input'],
  details: ModelDetails | undefined,
): neutral.GenerateRequest {
  const { model = '', options = {}, truncate = true, format, logprobs, top_logprobs: alternatives } = body
  const { num_predict: limit } = options
  const stop = toStops(options)
  const reasoning = toReasoning(body, details)
  const lacks = (capability: Capability): boolean => details?.capabilities.includes(capability) === false
  if (input.kind === 'chat' && input.tools && lacks('tools'))
    throw invalidRequest(`${qualified(model)} does not support tools`, { param: 'tools' })
  // A template of the request's own may know how.
  if (input.kind === 'infill' && input.template === undefined && lacks('insert'))
    throw invalidRequest(`${qualified(model)} does not support insert`, { param: 'suffix' })
  return {
    model,
    input: isRaw(input) ? input : { ...input, ...toEffort(body, details) },
    // Who says that there is none has none, whatever the model's own is.
    ...(limit !== undefined && { maxTokens: limit > 0 ? limit : limits.int32 }),
    ...(stop && { stop }),
    sampling: toSampling(options),
    defaultSampling: ollamaSampling,
    // What continues a text is not looked into.
    ...(reasoning !== undefined && !isRaw(input) && { reasoning }),
    ...(format && { format: toFormat(format) }),
    ...(logprobs && { logprobs: alternatives ?? 0 }),
    overflow: truncate ? 'truncate' : 'error',
    load: toLoad(body),
  }
}

/** As Ollama names it there. */
function qualified(model: string): string {
  const name = parseModelName(model)
  return name ? fullName(name) : `"${model}"`
}

const toFormat = (format: 'json' | object): neutral.OutputFormat =>
  format === 'json' ? { type: 'json' } : { type: 'json-schema', schema: format as object }

export const toLoad = ({
  options = {},
  keep_alive: keepAlive,
}: Pick<schema.ChatRequest, 'options' | 'keep_alive'>): neutral.LoadOptions =>
  given({ contextSize: toContextSize(options), keepAlive })

/** A model that can think does so, unless it is told not to. */
function toReasoning(
  { model, think }: Pick<schema.ChatRequest, 'model' | 'think'>,
  details: ModelDetails | undefined,
): boolean | undefined {
  if (!details) return think === undefined ? undefined : think !== false
  if (details.capabilities.includes('thinking')) return think !== false
  if (!think) return undefined
  throw invalidRequest(`"${model}" does not support thinking`, { param: 'think' })
}

/** How much it thinks, for templates that ask. gpt-oss knows no more than `high`. */
function toEffort(
  { think }: Pick<schema.ChatRequest, 'think'>,
  details: ModelDetails | undefined,
): Pick<neutral.ChatInput, 'templateOptions'> {
  if (typeof think !== 'string') return {}
  const isCapped = think === 'max' && /^gpt-?oss$/.test(details?.architecture ?? '')
  return { templateOptions: { reasoning_effort: isCapped ? 'high' : think } }
}
