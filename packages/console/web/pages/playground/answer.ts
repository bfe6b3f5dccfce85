/** One answer, as it grows. */
import type { AnswerPart, Message, Progress, ToolCall, Usage } from './apis/api.ts'

export interface Answer {
  readonly text: string
  readonly reasoning: string
  /** By their index in the stream, which may have gaps. */
  readonly calls: Readonly<Record<number, ToolCall>>
  /** Until the first token. */
  readonly progress?: Progress
  readonly usage?: Usage
  readonly finishReason?: string
  /** When the request was sent, in ms of `performance.now()`, as all times here. */
  readonly startedAt: number
  readonly firstTokenAt?: number
  readonly lastTokenAt?: number
}

export const startAnswer = (now: number): Answer => ({ text: '', reasoning: '', calls: {}, startedAt: now })

/** Returns the answer with one more part. */
export function addPart(answer: Answer, part: AnswerPart, now: number): Answer {
  switch (part.type) {
    case 'progress':
      return { ...answer, progress: part.progress }
    case 'usage':
      return { ...answer, usage: part.usage }
    case 'finish':
      return { ...answer, finishReason: part.reason }
    default:
      return addOutput(answer, part, now)
  }
}

type Output = Extract<AnswerPart, { type: 'text' | 'reasoning' | 'tool-call' }>

function addOutput({ progress: _, ...answer }: Answer, part: Output, now: number): Answer {
  const timed = { ...answer, firstTokenAt: answer.firstTokenAt ?? now, lastTokenAt: now }
  if (part.type !== 'tool-call') return { ...timed, [part.type]: answer[part.type] + part.text }
  const { index, call } = part
  const known = answer.calls[index] ?? { id: '', name: '', arguments: '' }
  const merged = { ...known, ...call, arguments: known.arguments + (call.arguments ?? '') }
  return { ...timed, calls: { ...answer.calls, [index]: merged } }
}

export const toolCallsOf = ({ calls }: Answer): readonly ToolCall[] => Object.values(calls)

/** The answer as a message of the next request. Undefined if it has no content. */
export function toMessage(answer: Answer): Message | undefined {
  const { text, reasoning } = answer
  const toolCalls = toolCallsOf(answer)
  return text === '' && reasoning === '' && toolCalls.length === 0
    ? undefined
    : { role: 'assistant', text, reasoning, toolCalls }
}

export interface AnswerSpeed {
  readonly firstTokenMs?: number
  /** Of the tokens after the first one. */
  readonly tokensPerSecond?: number
}

/** Below, the network decides when tokens arrive together, in ms. */
const minMeasuredMs = 100

/** The speed that the engine measured, or else the one that the browser saw. */
export function speedOf({ startedAt, firstTokenAt, lastTokenAt, usage }: Answer): AnswerSpeed {
  if (firstTokenAt === undefined || lastTokenAt === undefined) return {}
  const ms = lastTokenAt - firstTokenAt
  const seen = ms >= minMeasuredMs && usage ? ((usage.outputTokens - 1) * 1_000) / ms : undefined
  const tokensPerSecond = usage?.tokensPerSecond ?? seen
  return {
    firstTokenMs: firstTokenAt - startedAt,
    ...(tokensPerSecond !== undefined && tokensPerSecond > 0 && { tokensPerSecond }),
  }
}
