/**
 * From neutral events to the Ollama API.
 * Shape: Ollama API reference, "Generate a response" and "Generate a chat message".
 */

import type { Generation } from '../../calls/generate.ts'
import {
  type Answer,
  collect,
  type DrawnToken,
  type FinishReason,
  type TokenLogprob,
  type ToolCall,
} from '../../engine/events.ts'
import { jsonLine } from '../../http/streams.ts'

/** What is said in a line, or in all of them. */
interface Said {
  readonly text?: string
  readonly thinking?: string
  readonly calls?: readonly object[]
}

/** What a piece of an answer is called: `response` in one route, `message` in the other. */
export type Piece = (said: Said) => object

/** Without thoughts the key is left out: clients take an empty one for an answer without text. */
export const asMessage: Piece = ({ text = '', thinking = '', calls = [] }) => ({
  message: {
    role: 'assistant',
    content: text,
    ...(thinking !== '' && { thinking }),
    ...(calls.length > 0 && { tool_calls: calls }),
  },
})
export const asResponse: Piece = ({ text = '', thinking = '' }) => ({
  response: text,
  ...(thinking !== '' && { thinking }),
})

/** A whole answer. Throws an `AbortError` when it was cancelled before its end. */
export async function completion(generation: Generation, startedAt: number, piece: Piece): Promise<object> {
  const tokens: DrawnToken[] = []
  const answer = await collect(keeping(generation, tokens))
  const { text, reasoning: thinking = '', toolCalls = [] } = answer
  const calls = toolCalls.flatMap((call, index) => toCall(call, index) ?? [])
  return {
    ...head(generation.model),
    ...piece({ text, thinking, calls }),
    ...ending(answer, startedAt),
    ...toLogprobs(tokens),
  }
}

/** Of thoughts, too, which an `Answer` leaves out. */
async function* keeping(events: Generation, tokens: DrawnToken[]) {
  for await (const event of events) {
    if (event.type === 'text' || event.type === 'reasoning') tokens.push(...(event.logprobs ?? []))
    yield event
  }
}

/** The lines of a streamed answer. A call is a line when it is whole; one that is broken off is none. */
export async function* lines(
  generation: Generation,
  startedAt: number,
  piece: Piece,
): AsyncGenerator<string> {
  const { model } = generation
  let call: { id: string; name: string; arguments: string } | undefined
  let told = 0
  for await (const event of generation) {
    if (event.type === 'start') continue
    if (event.type === 'tool-arguments') {
      if (call) call.arguments += event.json
      continue
    }
    const whole = call && toCall(call, told)
    if (whole) {
      told++
      yield line(model, piece({ calls: [whole] }))
    }
    call = event.type === 'tool-call' ? { ...event, arguments: '' } : undefined
    if (event.type === 'text') yield line(model, piece({ text: event.text }), event.logprobs)
    else if (event.type === 'reasoning') yield line(model, piece({ thinking: event.text }), event.logprobs)
    else if (event.type === 'end')
      yield jsonLine({ ...head(model), ...piece({}), ...ending(event, startedAt) })
  }
}

/** Nothing of one that was broken off. */
function toCall({ id, name, arguments: json }: ToolCall, index: number): object | undefined {
  try {
    return { id, function: { index, name, arguments: JSON.parse(json) } }
  } catch {
    return undefined
  }
}

/** No key where none were asked for. */
const toLogprobs = (tokens: readonly DrawnToken[] = []): object =>
  tokens.length === 0 ? {} : { logprobs: tokens.map(toLogprob) }

const toLogprob = ({ top, ...token }: DrawnToken): object => ({
  ...toToken(token),
  ...(top.length > 0 && { top_logprobs: top.map(toToken) }),
})

const toToken = ({ text: token, logprob, bytes }: TokenLogprob): object => ({ token, logprob, bytes })

/** A piece that says nothing. There is no other line that breaks a silence and disturbs no client. */
export const heartbeat = (model: string, piece: Piece): string => line(model, piece({}))

/** That a model was loaded or let go: always one object, even where a stream was asked for. */
export const acknowledgement = (model: string, reason: 'load' | 'unload', piece: Piece): object => ({
  ...head(model),
  ...piece({}),
  done: true,
  done_reason: reason,
})

/** The prompt, instead of an answer. */
export const rendered = (model: string, prompt: string, piece: Piece): object => ({
  ...head(model),
  ...piece({}),
  done: false,
  _debug_info: { rendered_template: prompt },
})

const line = (model: string, piece: object, tokens?: readonly DrawnToken[]): string =>
  jsonLine({ ...head(model), ...piece, done: false, ...toLogprobs(tokens) })

const head = (model: string) => ({ model, created_at: new Date().toISOString() })

/** Counts and durations stand in the last line only: clients add them up. */
const ending = (
  { reason, usage, timings, tokens }: Pick<Answer, 'reason' | 'usage' | 'timings' | 'tokens'>,
  startedAt: number,
) => ({
  done: true,
  done_reason: doneReasons[reason],
  ...(tokens && { context: tokens }),
  total_duration: nanoseconds(performance.now() - startedAt),
  load_duration: nanoseconds(timings.loadMs),
  prompt_eval_count: usage.inputTokens,
  prompt_eval_duration: nanoseconds(timings.promptMs),
  eval_count: usage.outputTokens,
  eval_duration: nanoseconds(timings.generateMs),
})

const doneReasons = {
  stop: 'stop',
  length: 'length',
  context: 'length',
  'tool-calls': 'stop',
} as const satisfies Record<FinishReason, string>

/** Never none: clients divide by them. */
export const nanoseconds = (ms: number): number => Math.max(1, Math.round(ms * 1e6))
