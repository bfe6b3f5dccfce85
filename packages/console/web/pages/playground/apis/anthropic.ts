/** The Anthropic API: `POST /v1/messages`. */
import { toApiError } from '../../../api/errors.ts'
import { readEvents } from '../../../llm/streams.ts'
import { type AnswerPart, type Api, type ChatRequest, type Message, parseArguments } from './api.ts'

export const anthropic: Api = {
  title: 'Anthropic',
  path: '/v1/messages',
  measuring: {},
  toBody,
  readAnswer,
}

/** The API requires a limit. */
export const defaultMaxTokens = 4096

/** The API has no seed. */
function toBody({ model, system, messages, tools, schema, ...request }: ChatRequest): object {
  const { maxTokens = defaultMaxTokens, isThinking } = request
  return {
    model,
    max_tokens: maxTokens,
    ...(isThinking !== undefined && { thinking: toThinking(isThinking, maxTokens) }),
    ...(request.isCached && { cache_control: { type: 'ephemeral' } }),
    ...(system && { system }),
    messages: toMessages(messages),
    stream: true,
    ...(request.temperature !== undefined && { temperature: request.temperature }),
    ...(tools.length > 0 && {
      tools: tools.map(({ parameters, ...tool }) => ({ ...tool, input_schema: parameters })),
    }),
    ...(schema && { output_config: { format: { type: 'json_schema', schema } } }),
  }
}

/** Thinking counts towards the limit, so that half of it is left for the answer. */
const toThinking = (isThinking: boolean, maxTokens: number): object =>
  isThinking ? { type: 'enabled', budget_tokens: Math.ceil(maxTokens / 2) } : { type: 'disabled' }

/** The results of all calls of an answer are one message. */
function toMessages(messages: readonly Message[]): readonly object[] {
  const result: { role: string; content: string | object[] }[] = []
  for (const message of messages) {
    const last = result.at(-1)
    if (message.role !== 'tool') result.push(toMessage(message))
    else if (last?.role === 'user' && Array.isArray(last.content)) last.content.push(toToolResult(message))
    else result.push({ role: 'user', content: [toToolResult(message)] })
  }
  return result
}

type ToolMessage = Extract<Message, { role: 'tool' }>

const toToolResult = ({ callId, text }: ToolMessage): object => ({
  type: 'tool_result',
  tool_use_id: callId,
  content: text,
})

function toMessage(message: Exclude<Message, ToolMessage>): { role: string; content: string | object[] } {
  const { role, text } = message
  if (role === 'user' || message.toolCalls.length === 0) return { role, content: text }
  const calls = message.toolCalls.map((call) => ({
    type: 'tool_use',
    id: call.id,
    name: call.name,
    input: parseArguments(call),
  }))
  return { role, content: [...(text ? [{ type: 'text', text }] : []), ...calls] }
}

interface EventUsage {
  readonly input_tokens: number
  readonly output_tokens: number
  readonly cache_read_input_tokens?: number
  readonly cache_creation_input_tokens?: number
}

type StreamEvent =
  | { readonly type: 'error'; readonly error: object }
  | {
      readonly type: 'content_block_start'
      readonly index: number
      readonly content_block: { readonly type: string; readonly id?: string; readonly name?: string }
    }
  | {
      readonly type: 'content_block_delta'
      readonly index: number
      readonly delta:
        | { readonly type: 'text_delta'; readonly text: string }
        | { readonly type: 'thinking_delta'; readonly thinking: string }
        | { readonly type: 'input_json_delta'; readonly partial_json: string }
    }
  | {
      readonly type: 'message_delta'
      readonly delta: { readonly stop_reason: string }
      readonly usage: EventUsage
    }

async function* readAnswer(response: Response): AsyncGenerator<AnswerPart> {
  for await (const value of readEvents(response)) {
    const event = value as StreamEvent
    if (event.type === 'error') throw toApiError(response.status, event)
    if (event.type === 'content_block_start' && event.content_block.type === 'tool_use') {
      const { id = '', name = '' } = event.content_block
      yield { type: 'tool-call', index: event.index, call: { id, name } }
    }
    if (event.type === 'content_block_delta') {
      const { index, delta } = event
      if (delta.type === 'text_delta') yield { type: 'text', text: delta.text }
      else if (delta.type === 'thinking_delta') yield { type: 'reasoning', text: delta.thinking }
      else if (delta.type === 'input_json_delta')
        yield { type: 'tool-call', index, call: { arguments: delta.partial_json } }
    }
    if (event.type === 'message_delta') {
      yield { type: 'usage', usage: toUsage(event.usage) }
      yield { type: 'finish', reason: event.delta.stop_reason }
    }
  }
}

/** `input_tokens` of the API excludes the tokens that the cache had, and those written to it. */
function toUsage({ input_tokens, output_tokens, ...cache }: EventUsage) {
  const { cache_read_input_tokens: read = 0, cache_creation_input_tokens: written = 0 } = cache
  return {
    inputTokens: input_tokens + read + written,
    cachedTokens: read,
    cacheWriteTokens: written,
    outputTokens: output_tokens,
  }
}
