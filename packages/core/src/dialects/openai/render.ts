/**
 * From neutral events to the OpenAI API.
 * Shape: OpenAI API reference, "The chat completion object" and "The chat completion chunk object"; thoughts are
 * `reasoning_content` and `reasoning`, as clients know them from other local servers: some read the one, some the other.
 */

import type { Generation } from '../../calls/generation.ts'
import type {
  FinishReason,
  GenerateResult,
  SampledToken,
  TokenLogprob,
  TokenUsage,
  ToolCall,
} from '../../engine/events.ts'
import { dataFrame } from '../../http/streams.ts'
import type { ChatCompletionRequest } from './schema.ts'

/** A whole answer. */
export function renderCompletion(
  generation: Generation,
  answer: GenerateResult,
  body: ChatCompletionRequest,
): object {
  const { text, reasoning, reasoningTokens = 0, toolCalls = [], finishReason, logprobs = [] } = answer
  const isCalling = toolCalls.length > 0
  return {
    ...toHead(generation, 'chat.completion', 'chatcmpl'),
    system_fingerprint: answer.fingerprint,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: isCalling && text === '' ? null : text,
          refusal: null,
          ...(reasoning !== undefined && { reasoning_content: reasoning, reasoning }),
          ...(isCalling && { tool_calls: toolCalls.map(toToolCall) }),
        },
        logprobs: body.logprobs ? toLogprobs(logprobs) : null,
        // Calls count, also where a stop sequence came behind them.
        finish_reason: isCalling && finishReason === 'stop' ? 'tool_calls' : finishReasons[finishReason],
      },
    ],
    usage: toUsage(answer.usage, reasoningTokens),
  }
}

/** The frames of a streamed answer. */
export async function* renderChunks(
  generation: Generation,
  body: ChatCompletionRequest,
): AsyncGenerator<string> {
  const includesUsage = body.stream_options?.include_usage ?? false
  const common = toHead(generation, 'chat.completion.chunk', 'chatcmpl')
  let opening = ''
  let isCalling = false
  let reasoningTokens = 0
  const tail = includesUsage ? ',"usage":null}' : '}'
  const chunk = (delta: string, finish = 'null', logprobs = 'null'): string =>
    dataFrame(
      `${opening},"choices":[{"index":0,"delta":${delta},"logprobs":${logprobs},"finish_reason":${finish}}]${tail}`,
    )

  for await (const event of generation) {
    switch (event.type) {
      case 'start':
        // Prepared once: serialising whole chunks costs more than the tokens in them.
        opening = JSON.stringify({ ...common, system_fingerprint: event.fingerprint }).slice(0, -1)
        yield chunk('{"role":"assistant","content":"","refusal":null}')
        break
      case 'text': {
        const logprobs = event.logprobs && JSON.stringify(toLogprobs(event.logprobs))
        yield chunk(`{"content":${JSON.stringify(event.text)}}`, 'null', logprobs)
        break
      }
      case 'reasoning': {
        const thought = JSON.stringify(event.text)
        reasoningTokens += event.tokens
        yield chunk(`{"reasoning_content":${thought},"reasoning":${thought}}`)
        break
      }
      case 'tool-call': {
        isCalling = true
        // Said once: clients join what they are told twice.
        const call = { index: event.index, ...toToolCall({ ...event, arguments: '' }) }
        yield chunk(`{"tool_calls":[${JSON.stringify(call)}]}`)
        break
      }
      case 'tool-arguments': {
        const { index, json } = event
        yield chunk(`{"tool_calls":[${JSON.stringify({ index, function: { arguments: json } })}]}`)
        break
      }
      case 'end': {
        // What was said of a call that was broken off cannot be taken back, and must not look whole.
        const isBroken = event.incompleteCalls !== undefined
        const effectiveReason = isCalling && event.finishReason === 'stop' ? 'tool-calls' : event.finishReason
        yield chunk('{}', JSON.stringify(isBroken ? 'length' : finishReasons[effectiveReason]))
        if (includesUsage) yield usageFrame(opening, toUsage(event.usage, reasoningTokens))
        yield dataFrame('[DONE]')
      }
    }
  }
}

/** The last that has JSON, in a stream whose reader wants to know. */
export const usageFrame = (opening: string, usage: object): string =>
  dataFrame(`${opening},"choices":[],"usage":${JSON.stringify(usage)}}`)

export const toHead = ({ id, model, createdAt }: Generation, object: string, prefix: string) => ({
  id: `${prefix}-${id}`,
  object,
  created: Math.floor(createdAt.getTime() / 1000),
  model,
})

export const finishReasons = {
  stop: 'stop',
  length: 'length',
  context: 'length',
  'tool-calls': 'tool_calls',
} as const satisfies Record<FinishReason, string>

const toToolCall = ({ id, name, arguments: json }: ToolCall) => ({
  id,
  type: 'function',
  function: { name, arguments: json },
})

const toLogprobs = (tokens: readonly SampledToken[]) => ({
  content: tokens.map(toTokenLogprob),
  refusal: null,
})

export const toTokenLogprob = (token: SampledToken) => ({
  ...toLogprob(token),
  top_logprobs: token.top.map(toLogprob),
})

const toLogprob = ({ text, bytes, logprob }: TokenLogprob) => ({
  token: text,
  logprob: clampLogprob(logprob),
  bytes,
})

/** What cannot be is OpenAI's -9999: JSON has no infinity. */
export const clampLogprob = (logprob: number): number => Math.max(logprob, -9999)

export type UsageCounts = Pick<TokenUsage, 'inputTokens' | 'reusedTokens' | 'outputTokens'>

export const toUsage = ({ inputTokens, reusedTokens, outputTokens }: UsageCounts, reasoningTokens = 0) => ({
  prompt_tokens: inputTokens,
  completion_tokens: outputTokens,
  total_tokens: inputTokens + outputTokens,
  prompt_tokens_details: { cached_tokens: reusedTokens, audio_tokens: 0 },
  completion_tokens_details: {
    reasoning_tokens: reasoningTokens,
    audio_tokens: 0,
    accepted_prediction_tokens: 0,
    rejected_prediction_tokens: 0,
  },
})
