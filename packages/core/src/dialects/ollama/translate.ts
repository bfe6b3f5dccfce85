/** From the Ollama API to the neutral language. */
import type * as neutral from '../../engine/request.ts'
import { invalidRequest } from '../../errors.ts'
import type { ModelDetails } from '../../models/details.ts'
import type * as schema from './schema.ts'

/** No context is smaller. */
const leastContext = 16

export function toPrompt(body: schema.GenerateRequest): neutral.TextInput {
  const { prompt = '', system, context = [], raw = false } = body
  if (raw && (system || context.length > 0))
    throw invalidRequest('raw mode does not support template, system, or context')
  return {
    kind: 'text',
    prompt: [...(context.length > 0 ? [context] : []), prompt],
    ...(system && { system }),
    ...(raw && { template: false }),
  }
}

export const toConversation = (messages: readonly schema.Message[]): neutral.ChatInput => ({
  kind: 'chat',
  messages: messages.map(({ role = 'user', content = '', thinking }) => ({
    role: role === 'developer' ? 'system' : role,
    content: [
      ...(thinking ? [{ type: 'reasoning', text: thinking } as const] : []),
      { type: 'text', text: content },
    ],
  })),
})

/** @param details of the model, where they are known */
export function toGenerateRequest(
  body: schema.GenerateRequest | schema.ChatRequest,
  input: neutral.GenerateRequest['input'],
  details: ModelDetails | undefined,
): neutral.GenerateRequest {
  const { model = '', options = {}, truncate = true } = body
  const { num_predict: limit = -1, stop = [] } = options
  const stops = stop.filter((text) => text !== '')
  const reasoning = toReasoning(body, details)
  // What continues a text is not looked into.
  const isRaw = input.kind === 'text' && input.template === false
  return {
    model,
    input,
    ...(limit > 0 && { maxTokens: limit }),
    ...(stops.length > 0 && { stop: stops }),
    sampling: toSampling(options),
    ...(reasoning !== undefined && !isRaw && { reasoning }),
    overflow: truncate ? 'truncate' : 'error',
    load: toLoad(body),
  }
}

export const toLoad = ({
  options: { num_ctx: size = 0 } = {},
  keep_alive: keepAlive,
}: Pick<schema.ChatRequest, 'options' | 'keep_alive'>): neutral.LoadOptions => ({
  ...(size > 0 && { contextSize: Math.max(leastContext, size) }),
  ...(keepAlive !== undefined && { keepAlive }),
})

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

/** Ollama's defaults, where nothing is said. */
function toSampling({
  temperature = 0.8,
  top_k: topK = 40,
  top_p: topP = 0.9,
  min_p: minP = 0,
  seed = -1,
  ...more
}: schema.Options): neutral.Sampling {
  const given = {
    repeatPenalty: more.repeat_penalty,
    repeatLastN: more.repeat_last_n,
    presencePenalty: more.presence_penalty,
    frequencyPenalty: more.frequency_penalty,
    seed: seed < 0 ? undefined : seed,
  }
  return {
    ...{ temperature, topK, topP, minP },
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
  }
}
