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
import { AnswerTimings, renderProgress, timingsOf } from '../answer-progress.ts'
import { type FinishedChoice, mergeChoices, sumUsage } from './choices.ts'
import type { ChatCompletionRequest } from './schema.ts'

/** Renders a complete response. */
export function renderCompletion(choices: readonly FinishedChoice[], body: ChatCompletionRequest): object {
  const [{ generation, answer }] = choices as readonly [FinishedChoice]
  return {
    ...toHead(generation, 'chat.completion', 'chatcmpl'),
    system_fingerprint: answer.fingerprint,
    choices: choices.map(({ answer }, index) => toChoice(answer, index, body)),
    usage: toUsage(
      sumUsage(choices.map(({ answer }) => answer.usage)),
      choices.reduce((sum, { answer: { reasoningTokens = 0 } }) => sum + reasoningTokens, 0),
    ),
    ...(body.timings_per_token && { timings: timingsOf(answer) }),
  }
}

function toChoice(answer: GenerateResult, index: number, body: ChatCompletionRequest): object {
  const { text, reasoning, toolCalls = [], finishReason, logprobs = [] } = answer
  const isCalling = toolCalls.length > 0
  return {
    index,
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
  }
}

/** Renders the frames of a streamed response. */
export async function* renderChunks(
  choices: readonly [Generation, ...(Generation | Promise<Generation>)[]],
  body: ChatCompletionRequest,
): AsyncGenerator<string> {
  const [first, ...others] = choices
  const chunks = new ChatChunks(first, body)
  // For speed, a single choice is read without another iterator between, and `yield*` is avoided.
  if (others.length === 0)
    for await (const event of first) for (const frame of chunks.render(0, event)) yield frame
  else
    for await (const { index, event } of mergeChoices(choices))
      for (const frame of chunks.render(index, event)) yield frame
  if (chunks.ended === choices.length) yield* chunks.end()
}

interface ChoiceState {
  hasBegun: boolean
  isCalling: boolean
  /** Absent unless the client asks for timings. */
  readonly timings: AnswerTimings | undefined
}

class ChatChunks {
  /** Number of choices that have ended. */
  ended = 0
  readonly #head: object
  readonly #includesUsage: boolean
  readonly #hasTimings: boolean
  readonly #states: ChoiceState[] = []
  readonly #usages: TokenUsage[] = []
  #opening = ''
  /** Fields of the next chunk that other servers define, as JSON. */
  #extra = ''
  #reasoningTokens = 0

  constructor(
    generation: Generation,
    { stream_options: options, timings_per_token: timings }: ChatCompletionRequest,
  ) {
    this.#head = toHead(generation, 'chat.completion.chunk', 'chatcmpl')
    this.#includesUsage = options?.include_usage ?? false
    this.#hasTimings = timings ?? false
  }

  *render(index: number, event: GenerateEvent): Generator<string> {
    this.#states[index] ??= {
      hasBegun: false,
      isCalling: false,
      timings: this.#hasTimings ? new AnswerTimings() : undefined,
    }
    const state = this.#states[index]
    const timings = state.timings?.add(event)
    this.#extra = ''
    if (event.type === 'start') {
      // Common fields are serialised once. Serialising each chunk costs more than generating its tokens.
      this.#opening ||= JSON.stringify({ ...this.#head, system_fingerprint: event.fingerprint }).slice(0, -1)
      return
    }
    if (event.type !== 'progress' && !state.hasBegun) {
      yield this.#chunk(index, toFirstDelta(event))
      state.hasBegun = true
    }
    if (event.type === 'progress')
      this.#extra = joinFields({ ...renderProgress(event), ...(timings && { timings }) })
    else if (timings) this.#extra = joinFields({ timings })
    yield this.#renderEvent(index, event, state)
  }

  *end(): Generator<string> {
    if (this.#includesUsage)
      yield usageFrame(this.#opening + this.#extra, toUsage(sumUsage(this.#usages), this.#reasoningTokens))
    yield dataFrame('[DONE]')
  }

  #renderEvent(index: number, event: Exclude<GenerateEvent, { type: 'start' }>, state: ChoiceState): string {
    switch (event.type) {
      case 'text': {
        const logprobs = event.logprobs && JSON.stringify(toLogprobs(event.logprobs))
        return this.#chunk(index, `{"content":${JSON.stringify(event.text)}}`, 'null', logprobs)
      }
      case 'reasoning': {
        const thought = JSON.stringify(event.text)
        this.#reasoningTokens += event.tokens
        return this.#chunk(index, `{"reasoning_content":${thought},"reasoning":${thought}}`)
      }
      case 'tool-call': {
        state.isCalling = true
        // The name is sent only once, since clients concatenate repeated names.
        const call = { index: event.index, ...toToolCall({ ...event, arguments: '' }) }
        return this.#chunk(index, `{"tool_calls":[${JSON.stringify(call)}]}`)
      }
      case 'tool-arguments': {
        const call = { index: event.index, function: { arguments: event.json } }
        return this.#chunk(index, `{"tool_calls":[${JSON.stringify(call)}]}`)
      }
      case 'progress':
        // The role comes with the first output, since Python's client joins repeated roles.
        return this.#chunk(index, '{}')
      default:
        return event.type === 'end' ? this.#renderEnd(index, event, state) : ''
    }
  }

  #renderEnd(
    index: number,
    event: Extract<GenerateEvent, { type: 'end' }>,
    { isCalling }: ChoiceState,
  ): string {
    this.ended++
    this.#usages[index] = event.usage
    // An incomplete tool call has been sent already, and must not look complete.
    const isBroken = event.incompleteCalls !== undefined
    const effectiveReason = isCalling && event.finishReason === 'stop' ? 'tool-calls' : event.finishReason
    return this.#chunk(index, '{}', JSON.stringify(isBroken ? 'length' : finishReasons[effectiveReason]))
  }

  #chunk(index: number, delta: string, finish = 'null', logprobs = 'null'): string {
    const choice = `{"index":${index},"delta":${delta},"logprobs":${logprobs},"finish_reason":${finish}}`
    // The fingerprint is unknown before the model is loaded.
    const opening = this.#opening || JSON.stringify(this.#head).slice(0, -1)
    const usage = this.#includesUsage ? ',"usage":null' : ''
    return dataFrame(`${opening},"choices":[${choice}]${usage}${this.#extra}}`)
  }
}

/** A message without text has no content, so it is null before a tool call, and before reasoning. */
const toFirstDelta = ({ type }: GenerateEvent): string =>
  `{"role":"assistant","content":${type === 'text' || type === 'end' ? '""' : 'null'},"refusal":null}`

/** Returns fields as JSON that other fields precede, and as an empty text without fields. */
export function joinFields(fields: object): string {
  const json = JSON.stringify(fields).slice(1, -1)
  return json === '' ? '' : `,${json}`
}

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
