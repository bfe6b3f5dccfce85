/**
 * From neutral events to the Ollama API.
 * Shape: Ollama API reference, "Generate a response" and "Generate a chat message".
 */

import type { Generation } from '../../calls/generation.ts'
import {
  collect,
  type FinishReason,
  type GenerateResult,
  type SampledToken,
  type TokenLogprob,
  type ToolCall,
} from '../../engine/events.ts'
import { jsonLine } from '../../http/streams.ts'
import { tryParseJson } from '../../util/try-parse-json.ts'

/** What is said in a line, or in all of them. */
interface ResponseContent {
  readonly text?: string
  readonly thinking?: string
  readonly calls?: readonly object[]
}

/** What a piece of an answer is called: `response` in one route, `message` in the other. */
export type ContentFormatter = (content: ResponseContent) => object

/** Without thoughts the key is left out: clients take an empty one for an answer without text. */
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

/** A whole answer. Throws an `AbortError` when it was cancelled before its end. */
export async function renderCompletion(
  generation: Generation,
  startedAt: number,
  formatContent: ContentFormatter,
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
  }
}

/** Of thoughts, too, which an `Answer` leaves out. */
async function* collectLogprobs(events: Generation, tokens: SampledToken[]) {
  for await (const event of events) {
    if (event.type === 'text' || event.type === 'reasoning') tokens.push(...(event.logprobs ?? []))
    yield event
  }
}

/** The lines of a streamed answer. A call is a line when it is whole; one that is broken off is none. */
export async function* renderLines(
  generation: Generation,
  startedAt: number,
  formatContent: ContentFormatter,
): AsyncGenerator<string> {
  const { model } = generation
  let call: { id: string; name: string; arguments: string } | undefined
  let callCount = 0
  for await (const event of generation) {
    if (event.type === 'start') continue
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
    if (event.type === 'text') yield toLine(model, formatContent({ text: event.text }), event.logprobs)
    else if (event.type === 'reasoning')
      yield toLine(model, formatContent({ thinking: event.text }), event.logprobs)
    else if (event.type === 'end')
      yield jsonLine({ ...toHead(model), ...formatContent({}), ...toEnding(event, startedAt) })
  }
}

/** Nothing of one that was broken off. */
function toCall({ id, name, arguments: json }: ToolCall, index: number): object | undefined {
  const values = tryParseJson(json)
  return values === undefined ? undefined : { id, function: { index, name, arguments: values } }
}

/** No key where none were asked for. */
const toLogprobs = (tokens: readonly SampledToken[] = []): object =>
  tokens.length === 0 ? {} : { logprobs: tokens.map(toLogprob) }

const toLogprob = ({ top, ...token }: SampledToken): object => ({
  ...toToken(token),
  ...(top.length > 0 && { top_logprobs: top.map(toToken) }),
})

const toToken = ({ text: token, logprob, bytes }: TokenLogprob): object => ({ token, logprob, bytes })

/** A piece that says nothing. There is no other line that breaks a silence and disturbs no client. */
export const renderHeartbeat = (model: string, formatContent: ContentFormatter): string =>
  toLine(model, formatContent({}))

/** That a model was loaded or let go: always one object, even where a stream was asked for. */
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

/** The prompt, instead of an answer. */
export const renderPrompt = (model: string, prompt: string, formatContent: ContentFormatter): object => ({
  ...toHead(model),
  ...formatContent({}),
  done: false,
  _debug_info: { rendered_template: prompt },
})

const toLine = (model: string, content: object, tokens?: readonly SampledToken[]): string =>
  jsonLine({ ...toHead(model), ...content, done: false, ...toLogprobs(tokens) })

const toHead = (model: string) => ({ model, created_at: new Date().toISOString() })

/** Counts and durations stand in the last line only: clients add them up. */
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

/** Never none: clients divide by them. */
export const toNanoseconds = (ms: number): number => Math.max(1, Math.round(ms * 1e6))
