/**
 * Renders engine events as responses of the OpenAI API. Reasoning is sent twice, as `reasoning_content` and
 * as `reasoning`: other local servers define these fields, and each client reads only one of them.
 * Shape: OpenAI API reference, "The chat completion object" and "The chat completion chunk object".
 */

import type { Generation } from '../../calls/generation.ts'
import type {
  FinishReason,
  GenerateEvent,
  GenerateResult,
  SampledToken,
  TokenLogprob,
  TokenUsage,
  ToolCall,
} from '../../engine/events.ts'
import { dataFrame } from '../../http/streams.ts'
import type { ChatCompletionRequest } from './schema.ts'

/** Renders a complete response. */
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
        // If there are tool calls, a stop sequence after them does not change the finish reason.
        finish_reason: isCalling && finishReason === 'stop' ? 'tool_calls' : finishReasons[finishReason],
      },
    ],
    usage: toUsage(answer.usage, reasoningTokens),
  }
}

/** Renders the frames of a streamed response. */
export async function* renderChunks(
  generation: Generation,
  body: ChatCompletionRequest,
): AsyncGenerator<string> {
  const includesUsage = body.stream_options?.include_usage ?? false
  const common = toHead(generation, 'chat.completion.chunk', 'chatcmpl')
  let opening = ''
  let isFirst = true
  let isCalling = false
  let reasoningTokens = 0
  const tail = includesUsage ? ',"usage":null}' : '}'
  const chunk = (delta: string, finish = 'null', logprobs = 'null'): string =>
    dataFrame(
      `${opening},"choices":[{"index":0,"delta":${delta},"logprobs":${logprobs},"finish_reason":${finish}}]${tail}`,
    )

  for await (const event of generation) {
    if (event.type === 'start') {
      // Common fields are serialised once. Serialising each chunk costs more than generating its tokens.
      opening = JSON.stringify({ ...common, system_fingerprint: event.fingerprint }).slice(0, -1)
      continue
    }
    if (isFirst) yield chunk(toFirstDelta(event))
    isFirst = false
    switch (event.type) {
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
        // The name is sent only once, since clients concatenate repeated names.
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
        // An incomplete tool call has been sent already, and must not look complete.
        const isBroken = event.incompleteCalls !== undefined
        const effectiveReason = isCalling && event.finishReason === 'stop' ? 'tool-calls' : event.finishReason
        yield chunk('{}', JSON.stringify(isBroken ? 'length' : finishReasons[effectiveReason]))
        if (includesUsage) yield usageFrame(opening, toUsage(event.usage, reasoningTokens))
        yield dataFrame('[DONE]')
      }
    }
  }
}

/** A message without text has no content, so it is null before a tool call, and before reasoning. */
const toFirstDelta = ({ type }: GenerateEvent): string =>
  `{"role":"assistant","content":${type === 'text' || type === 'end' ? '""' : 'null'},"refusal":null}`

/** Frame with the usage, for `stream_options.include_usage`. It is sent before `[DONE]`. */
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

/** Clamps minus infinity, which JSON cannot express, to OpenAI's -9999. */
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
