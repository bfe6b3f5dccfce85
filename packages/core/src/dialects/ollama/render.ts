/**
 * Renders engine events as responses of the Ollama API.
 * Shape: Ollama API reference, "Generate a response" and "Generate a chat message".
 */

import type { Generation } from '../../calls/generation.ts'
import {
  collect,
  type FinishReason,
  type GenerateResult,
  type LoadProgress,
  type SampledToken,
  type TokenLogprob,
  type ToolCall,
} from '../../engine/events.ts'
import { jsonLine } from '../../http/streams.ts'
import { tryParseJson } from '../../util/try-parse-json.ts'
import { AnswerTimings, renderProgress, timingsOf } from '../answer-progress.ts'

/** Content of one line, or of a complete response. */
interface ResponseContent {
  readonly text?: string
  readonly thinking?: string
  readonly calls?: readonly object[]
}

/** Wraps content as `response` or as `message`, depending on the route. */
export type ContentFormatter = (content: ResponseContent) => object

/** Omits an empty `thinking`, since clients would conclude that the answer has no text. */
export const formatMessage: ContentFormatter = ({ text = '', thinking = '', calls = [] }) => ({
  message: {
    role: 'assistant',
    content: text,
    ...(thinking !== '' && { thinking }),
    ...(calls.length > 0 && { tool_calls: calls }),
  },
})
export const formatResponse: ContentFormatter = ({ text = '', thinking = '' }) => ({
  response: text,
  ...(thinking !== '' && { thinking }),
})

interface LineOptions {
  readonly startedAt: number
  readonly formatContent: ContentFormatter
  /** Whether the client asks for the timings of llama.cpp's server. */
  readonly hasTimings: boolean
}

/** Renders a complete response. Throws an `AbortError` if the generation was cancelled. */
export async function renderCompletion(
  generation: Generation,
  { startedAt, formatContent, hasTimings }: LineOptions,
): Promise<object> {
  const tokens: SampledToken[] = []
  const answer = await collect(collectLogprobs(generation, tokens))
  const { text, reasoning: thinking = '', toolCalls = [] } = answer
  const calls = toolCalls.flatMap((call, index) => toCall(call, index) ?? [])
  return {
    ...toHead(generation.model),
    ...formatContent({ text, thinking, calls }),
    ...toEnding(answer, startedAt),
    ...toLogprobs(tokens),
    ...(hasTimings && { timings: timingsOf(answer) }),
  }
}

/** Collects the logprobs of text and reasoning. A `GenerateResult` contains only the logprobs of text. */
async function* collectLogprobs(events: Generation, tokens: SampledToken[]) {
  for await (const event of events) {
    if (event.type === 'text' || event.type === 'reasoning') tokens.push(...(event.logprobs ?? []))
    yield event
  }
}

/**
 * Renders the lines of a streamed response. A complete tool call is one line. Incomplete tool calls are
 * omitted.
 */
export async function* renderLines(
  generation: Generation,
  { startedAt, formatContent, hasTimings }: LineOptions,
): AsyncGenerator<string> {
  const { model } = generation
  const meter = hasTimings ? new AnswerTimings() : undefined
  let call: { id: string; name: string; arguments: string } | undefined
  let callCount = 0
  for await (const event of generation) {
    const timings = meter?.add(event)
    if (event.type === 'start') continue
    if (event.type === 'progress') {
      const progress = { ...renderProgress(event), ...(timings && { timings }) }
      yield toLine(model, { ...formatContent({}), ...progress })
      continue
    }
    if (event.type === 'tool-arguments') {
      if (call) call.arguments += event.json
      continue
    }
    const completeCall = call && toCall(call, callCount)
    if (completeCall) {
      callCount++
      yield toLine(model, formatContent({ calls: [completeCall] }))
    }
    call = event.type === 'tool-call' ? { ...event, arguments: '' } : undefined
    const extra = timings && { timings }
    if (event.type === 'text')
      yield toLine(model, { ...formatContent({ text: event.text }), ...extra }, event.logprobs)
    else if (event.type === 'reasoning')
      yield toLine(model, { ...formatContent({ thinking: event.text }), ...extra }, event.logprobs)
    else if (event.type === 'end')
      yield jsonLine({ ...toHead(model), ...formatContent({}), ...toEnding(event, startedAt), ...extra })
  }
}

/** Returns `undefined` for an incomplete tool call. */
function toCall({ id, name, arguments: json }: ToolCall, index: number): object | undefined {
  const values = tryParseJson(json)
  return values === undefined ? undefined : { id, function: { index, name, arguments: values } }
}

/** Omits the field `logprobs` if there are none. */
const toLogprobs = (tokens: readonly SampledToken[] = []): object =>
  tokens.length === 0 ? {} : { logprobs: tokens.map(toLogprob) }

const toLogprob = ({ top, ...token }: SampledToken): object => ({
  ...toToken(token),
  ...(top.length > 0 && { top_logprobs: top.map(toToken) }),
})

const toToken = ({ text: token, logprob, bytes }: TokenLogprob): object => ({ token, logprob, bytes })

/** A line without content: the only heartbeat that all clients ignore. */
export const renderHeartbeat = (model: string, formatContent: ContentFormatter): string =>
  toLine(model, formatContent({}))

/** Response to loading or unloading a model: one object, even if a stream was requested. */
export const renderAcknowledgement = (
  model: string,
  reason: 'load' | 'unload',
  formatContent: ContentFormatter,
): object => ({
  ...toHead(model),
  ...formatContent({}),
  done: true,
  done_reason: reason,
})

/** Renders the lines of a load whose progress was requested. */
export async function* renderLoad(
  model: string,
  steps: AsyncIterable<LoadProgress | 'load' | 'unload'>,
  formatContent: ContentFormatter,
): AsyncGenerator<string> {
  for await (const step of steps)
    if (typeof step === 'object') yield toLine(model, { ...formatContent({}), ...renderProgress(step) })
    else yield jsonLine(renderAcknowledgement(model, step, formatContent))
}

/** Rendered prompt, for `_debug_render_only`. */
export const renderPrompt = (model: string, prompt: string, formatContent: ContentFormatter): object => ({
  ...toHead(model),
  ...formatContent({}),
  done: false,
  _debug_info: { rendered_template: prompt },
})

const toLine = (model: string, content: object, tokens?: readonly SampledToken[]): string =>
  jsonLine({ ...toHead(model), ...content, done: false, ...toLogprobs(tokens) })

const toHead = (model: string) => ({ model, created_at: new Date().toISOString() })

/** Counts and durations. Only the last line contains them, since clients add up the values of all lines. */
const toEnding = (
  {
    finishReason,
    usage,
    timings,
    tokens,
  }: Pick<GenerateResult, 'finishReason' | 'usage' | 'timings' | 'tokens'>,
  startedAt: number,
) => ({
  done: true,
  done_reason: doneReasons[finishReason],
  ...(tokens && { context: tokens }),
  total_duration: toNanoseconds(performance.now() - startedAt),
  load_duration: toNanoseconds(timings.loadMs),
  prompt_eval_count: usage.inputTokens,
  prompt_eval_duration: toNanoseconds(timings.promptMs),
  eval_count: usage.outputTokens,
  eval_duration: toNanoseconds(timings.generateMs),
})

const doneReasons = {
  stop: 'stop',
  length: 'length',
  context: 'length',
  'tool-calls': 'stop',
} as const satisfies Record<FinishReason, string>

/** Returns at least 1, since clients divide by durations. */
export const toNanoseconds = (ms: number): number => Math.max(1, Math.round(ms * 1e6))
