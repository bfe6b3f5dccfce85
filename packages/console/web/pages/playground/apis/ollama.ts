/** The Ollama API: `POST /api/chat`. */
import { toApiError } from '../../../api/errors.ts'
import { readLines } from '../../../llm/streams.ts'
import { type AnswerPart, type Api, type ChatRequest, type Message, parseArguments } from './api.ts'
import { type LlamaFields, readProgress, readSpeed } from './llama-fields.ts'

export const ollama: Api = {
  title: 'Ollama',
  path: '/api/chat',
  measuring: { return_progress: true, timings_per_token: true },
  toBody,
  readAnswer,
}

function toBody({ model, system, messages, tools, schema, ...request }: ChatRequest): object {
  const options = {
    ...(request.temperature !== undefined && { temperature: request.temperature }),
    ...(request.maxTokens !== undefined && { num_predict: request.maxTokens }),
    ...(request.seed !== undefined && { seed: request.seed }),
  }
  return {
    model,
    messages: [...(system ? [{ role: 'system', content: system }] : []), ...messages.map(toMessage)],
    stream: true,
    ...(Object.keys(options).length > 0 && { options }),
    ...(request.isThinking !== undefined && { think: request.isThinking }),
    ...(tools.length > 0 && { tools: tools.map((tool) => ({ type: 'function', function: tool })) }),
    ...(schema && { format: schema }),
  }
}

function toMessage(message: Message): object {
  if (message.role === 'user') return { role: 'user', content: message.text }
  if (message.role === 'tool')
    return {
      role: 'tool',
      content: message.text,
      tool_name: message.name,
      tool_call_id: message.callId,
    }
  return {
    role: 'assistant',
    content: message.text,
    ...(message.toolCalls.length > 0 && {
      tool_calls: message.toolCalls.map((call) => ({
        id: call.id,
        function: { name: call.name, arguments: parseArguments(call) },
      })),
    }),
  }
}

interface Line extends LlamaFields {
  readonly error?: string
  readonly message?: {
    readonly content?: string
    readonly thinking?: string
    readonly tool_calls?: readonly {
      readonly id?: string
      readonly function: { readonly name: string; readonly arguments: object }
    }[]
  }
  readonly done?: boolean
  readonly done_reason?: string
  readonly prompt_eval_count?: number
  readonly eval_count?: number
}

async function* readAnswer(response: Response): AsyncGenerator<AnswerPart> {
  let index = 0
  for await (const value of readLines(response)) {
    const line = value as Line
    if (line.error !== undefined) throw toApiError(response.status, line)
    yield* readProgress(line)
    const { content, thinking, tool_calls: calls = [] } = line.message ?? {}
    if (thinking) yield { type: 'reasoning', text: thinking }
    if (content) yield { type: 'text', text: content }
    for (const { id, function: call } of calls) {
      const json = JSON.stringify(call.arguments)
      yield {
        type: 'tool-call',
        index,
        call: { id: id ?? `call_${index}`, name: call.name, arguments: json },
      }
      index += 1
    }
    if (!line.done) continue
    yield {
      type: 'usage',
      usage: {
        inputTokens: line.prompt_eval_count ?? 0,
        cachedTokens: line.timings?.cache_n ?? 0,
        outputTokens: line.eval_count ?? 0,
        ...readSpeed(line),
      },
    }
    yield { type: 'finish', reason: line.done_reason ?? 'stop' }
  }
}
