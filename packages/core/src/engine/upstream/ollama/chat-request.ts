/** Translates requests to bodies of the Ollama API. Shape: Ollama API reference. */
import { invalidRequest } from '../../../errors.ts'
import type {
  ChatInput,
  GenerateRequest,
  InfillInput,
  LoadOptions,
  Message,
  OutputFormat,
  TextInput,
} from '../../request.ts'
import { callableTools, toTemplateMessages } from '../../request-input.ts'
import { unlimitedTokens } from '../../request-limits.ts'
import { type LackedField, readEffort, rejectFields } from '../lacked-fields.ts'
import { unsupportedByUpstream } from '../upstream-errors.ts'
import { toMessages } from './messages.ts'

export interface OllamaRequest {
  readonly path: '/api/chat' | '/api/generate'
  readonly body: object
}

const efforts = ['low', 'medium', 'high', 'max'] as const
/** Longest keep-alive in ms: Go's longest duration has 2^63 ns. */
const maxKeepAlive = 9e12

const lackedFields: readonly LackedField[] = [
  ...(['sampling.logitBias', 'sampling.dry', 'sampling.xtc', 'sampling.ignoreEos'] as const),
  ...(['sampling.minTokens', 'promptLogprobs', 'promptEnd'] as const),
]

/** Earlier turns, and nothing else, make a text prompt a chat. */
export function toOllamaRequest(request: GenerateRequest): OllamaRequest {
  rejectFields(request, lackedFields)
  const { input } = request
  const common = toCommonFields(request)
  if (input.kind === 'infill') return { path: '/api/generate', body: { ...common, ...toInfill(input) } }
  if (input.kind === 'text' && !input.messages?.length)
    return { path: '/api/generate', body: { ...common, ...toPrompt(input) } }
  rejectFields(request, ['template'])
  const messages = toTemplateMessages(input)
  const body = { ...common, ...toChat(input, messages) }
  return { path: '/api/chat', body }
}

function toCommonFields(request: GenerateRequest) {
  const { model, overflow, format, logprobs } = request
  return {
    ...{ model, stream: true },
    // The server would otherwise drop the beginning of a long prompt.
    truncate: overflow === 'truncate',
    ...toThink(request),
    ...(format && { format: toFormat(format) }),
    ...(logprobs !== undefined && { logprobs: true, top_logprobs: logprobs }),
    ...toLoadFields(request.load, toOptions(request)),
  }
}

/** @param options further options */
export function toLoadFields({ contextSize, keepAlive }: LoadOptions = {}, options: object = {}): object {
  return {
    options: { ...options, ...(contextSize !== undefined && { num_ctx: contextSize }) },
    ...(keepAlive !== undefined && {
      keep_alive: keepAlive === 'forever' ? -1 : `${Math.min(Math.round(keepAlive), maxKeepAlive)}ms`,
    }),
  }
}

function toOptions({ sampling = {}, stop, maxTokens, defaultMaxTokens }: GenerateRequest): object {
  const limit = maxTokens ?? defaultMaxTokens
  if (limit === 0) throw unsupportedByUpstream('requests for no output', 'maxTokens')
  const { seed } = sampling
  return {
    temperature: sampling.temperature,
    top_p: sampling.topP,
    top_k: sampling.topK,
    min_p: sampling.minP,
    seed: seed === 'random' ? -1 : seed,
    repeat_penalty: sampling.repeatPenalty,
    repeat_last_n: sampling.repeatLastN,
    presence_penalty: sampling.presencePenalty,
    frequency_penalty: sampling.frequencyPenalty,
    num_predict: limit === unlimitedTokens ? -1 : limit,
    ...(stop?.length && { stop }),
  }
}

/** Without the field, models that can reason do so. */
function toThink(request: GenerateRequest): object {
  const effort = readEffort(request, efforts)
  if (request.reasoning === false) return { think: false }
  const think = effort ?? (request.reasoning === true || undefined)
  return think === undefined ? {} : { think }
}

function toFormat(format: OutputFormat): 'json' | object {
  if (format.type === 'json') return 'json'
  if (format.type === 'json-schema' && typeof format.schema === 'object') return format.schema
  throw unsupportedByUpstream('this output format', 'format')
}

function toPrompt({ prompt, images, system, messages, template }: TextInput): object {
  const isRaw = template === false
  const text = prompt.filter((piece) => typeof piece === 'string').join('')
  const tokens = prompt.flatMap((piece) => (typeof piece === 'string' ? [] : piece))
  if (text === '') throw emptyPrompt('prompt')
  if (isRaw && tokens.length > 0) throw unsupportedByUpstream('prompts of token ids', 'prompt')
  return {
    prompt: text,
    ...(images && { images: images.map(({ data }) => data) }),
    ...(isRaw ? { raw: true } : { system, template }),
    // A list, also an empty one, replaces the messages of the Modelfile.
    ...(!isRaw && (messages || tokens.length > 0) && { context: tokens }),
  }
}

function toInfill({ prefix, suffix, template }: InfillInput): object {
  if (prefix === '') throw emptyPrompt('prompt')
  return { prompt: prefix, suffix, template }
}

function toChat(input: ChatInput | TextInput, messages: readonly Message[]): object {
  if (input.kind === 'text' && input.prompt.some((piece) => typeof piece !== 'string'))
    throw unsupportedByUpstream('prompts of token ids', 'prompt')
  if (input.kind === 'text' && input.template === false)
    throw unsupportedByUpstream('earlier messages without a template', 'messages')
  if (messages.length === 0) throw emptyPrompt('messages')
  return { messages: toMessages(messages), ...(input.kind === 'chat' && toTools(input)) }
}

/** The API cannot force calls. Without calls, the model does not see the tools. */
function toTools(input: ChatInput): object {
  const { toolChoice: { mode = 'auto', parallel } = {} } = input
  const tools = callableTools(input)
  if (tools.length === 0) return {}
  if (mode === 'required') throw unsupportedByUpstream('forced tool calls', 'toolChoice')
  if (parallel === false) throw unsupportedByUpstream('a limit of tool calls', 'toolChoice.parallel')
  const strict = tools.findIndex((tool) => tool.strict)
  if (strict >= 0) throw unsupportedByUpstream('strict tools', `tools[${strict}].strict`)
  return {
    tools: tools.map(({ name, description, parameters }) => ({
      ...{ type: 'function', function: { name, description, parameters } },
    })),
  }
}

/** The server would only load the model. */
const emptyPrompt = (param: string) =>
  invalidRequest('The prompt is empty, which the upstream server of this model does not support.', {
    ...{ param, issue: 'empty' },
  })
