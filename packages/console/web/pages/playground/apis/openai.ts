/** The OpenAI API: `POST /v1/chat/completions`. */
import { toApiError } from '../../../api/errors.ts'
import { readEvents } from '../../../llm/streams.ts'
import type { AnswerPart, Api, ChatRequest, Message } from './api.ts'
import { type LlamaFields, readProgress, readSpeed } from './llama-fields.ts'

export const openai: Api = {
  title: 'OpenAI',
  path: '/v1/chat/completions',
  measuring: { return_progress: true, timings_per_token: true },
  toBody,
  readAnswer,
}

function toBody({ model, system, messages, tools, schema, ...request }: ChatRequest): object {
  return {
    model,
    messages: [...(system ? [{ role: 'system', content: system }] : []), ...messages.map(toMessage)],
    stream: true,
    stream_options: { include_usage: true },
    ...(request.temperature !== undefined && { temperature: request.temperature }),
    ...(request.maxTokens !== undefined && { max_completion_tokens: request.maxTokens }),
    ...(request.seed !== undefined && { seed: request.seed }),
    ...(request.isThinking !== undefined && { reasoning_effort: request.isThinking ? 'medium' : 'none' }),
    ...(tools.length > 0 && { tools: tools.map((tool) => ({ type: 'function', function: tool })) }),
    ...(schema && { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } } }),
  }
}

function toMessage(message: Message): object {
  if (message.role === 'user') return { role: 'user', content: message.text }
  if (message.role === 'tool') return { role: 'tool', tool_call_id: message.callId, content: message.text }
  return {
    role: 'assistant',
    content: message.text,
    ...(message.toolCalls.length > 0 && {
      tool_calls: message.toolCalls.map(({ id, name, arguments: json }) => ({
        id,
        type: 'function',
        function: { name, arguments: json },
      })),
    }),
  }
}

interface Chunk extends LlamaFields {
  readonly error?: object
  readonly choices?: readonly {
    readonly delta?: {
      readonly content?: string | null
      /** Fields of vLLM, in its newer and older form. */
      readonly reasoning?: string | null
      readonly reasoning_content?: string | null
      readonly tool_calls?: readonly {
        readonly index: number
        readonly id?: string
        readonly function?: { readonly name?: string; readonly arguments?: string }
      }[]
    }
    readonly finish_reason?: string | null
  }[]
  readonly usage?: {
    readonly prompt_tokens: number
    readonly completion_tokens: number
    readonly prompt_tokens_details?: { readonly cached_tokens?: number }
  } | null
}

async function* readAnswer(response: Response): AsyncGenerator<AnswerPart> {
  for await (const value of readEvents(response)) {
    const chunk = value as Chunk
    if (chunk.error !== undefined) throw toApiError(response.status, chunk)
    yield* readProgress(chunk)
    const [choice] = chunk.choices ?? []
    const { content, reasoning, reasoning_content, tool_calls: calls = [] } = choice?.delta ?? {}
    const thought = reasoning ?? reasoning_content
    if (thought) yield { type: 'reasoning', text: thought }
    if (content) yield { type: 'text', text: content }
    for (const { index, id, function: call } of calls)
      yield { type: 'tool-call', index, call: { ...(id && { id }), ...call } }
    if (chunk.usage)
      yield {
        type: 'usage',
        usage: {
          inputTokens: chunk.usage.prompt_tokens,
          cachedTokens: chunk.usage.prompt_tokens_details?.cached_tokens ?? 0,
          outputTokens: chunk.usage.completion_tokens,
          ...readSpeed(chunk),
        },
      }
    if (choice?.finish_reason) yield { type: 'finish', reason: choice.finish_reason }
  }
}
