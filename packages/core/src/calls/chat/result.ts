/** The result of `llm.chat()`. */
import { addTokenUsage } from '../../accounts/usage/call-usage.ts'
import type { GenerateResult, Timings, TokenUsage } from '../../engine/events.ts'
import { LlmError } from '../../errors.ts'
import { tryParseJson } from '../../util/try-parse-json.ts'
import type { ChatMessage, ChatToolCall, ToolMessage } from './messages.ts'
import {
  describeIssues,
  type InputOf,
  type OutputOf,
  type OutputSchema,
  type PartialObject,
  type ResolvedSchema,
} from './output-schema.ts'

/** One answer of the model, and the results of its tool calls. */
export interface ChatStep extends Pick<GenerateResult, 'finishReason' | 'stopSequence' | 'fingerprint'> {
  /** Text of the answer. Empty if the model only called tools. */
  readonly text: string
  /** The model's reasoning before its text. */
  readonly reasoning?: string
  /** Number of reasoning tokens, which `usage.outputTokens` includes. */
  readonly reasoningTokens?: number
  /** Complete tool calls. */
  readonly toolCalls: readonly ChatToolCall[]
  /** Results of the calls that were run. */
  readonly toolResults: readonly ToolMessage[]
  /** Tokens of prompt and answer. */
  readonly usage: TokenUsage
  /** How long loading, prompt and answer took, in ms. */
  readonly timings: Timings
}

/** The last answer, with the usage and the timings of all steps. */
export interface ChatResult extends Omit<ChatStep, 'toolCalls' | 'toolResults'> {
  /** Calls that have no result yet: of tools without `execute`, or of the last of `maxSteps` steps. */
  readonly toolCalls: readonly ChatToolCall[]
  /** All answers, in order. The last one is also in the fields of the result. */
  readonly steps: readonly ChatStep[]
  /** The messages to append to the conversation before its next turn: answers, and results of tools. */
  readonly messages: readonly ChatMessage[]
}

/** A result with the validated object. It is undefined only if the answer ends with tool calls. */
export interface ObjectResult<T> extends ChatResult {
  /** The validated object, as the schema returns it. */
  readonly object: T
}

/** A piece of an answer with a schema. */
export interface ObjectPiece<T> {
  /** The next piece of the JSON text. */
  readonly text: string
  /** The part of the current answer so far, before validation. Strings may be incomplete. */
  readonly object: T | undefined
}

/** A piece of a stream. */
export type ChatPiece<Schema> = Schema extends OutputSchema
  ? ObjectPiece<PartialObject<InputOf<Schema>>>
  : string

/** The result for a schema and tools. Without tools, the object always exists. */
export type ChatResultOf<Schema, Parameters> = Schema extends OutputSchema
  ? ObjectResult<keyof Parameters extends never ? OutputOf<Schema> : OutputOf<Schema> | undefined>
  : ChatResult

export function toStep(
  answer: GenerateResult,
  toolCalls: readonly ChatToolCall[],
  toolResults: readonly ToolMessage[],
): ChatStep {
  return { ...answer, toolCalls, toolResults }
}

/** @param steps at least one */
export function toChatResult(
  steps: readonly ChatStep[],
  toolCalls: readonly ChatToolCall[],
  messages: readonly ChatMessage[],
): ChatResult {
  const { toolResults: _, ...last } = steps.at(-1) as ChatStep
  return {
    ...last,
    toolCalls,
    usage: steps.map(({ usage }) => usage).reduce(addTokenUsage),
    timings: steps.map(({ timings }) => timings).reduce(addTimings),
    steps,
    messages,
  }
}

const addTimings = (a: Timings, b: Timings): Timings => ({
  loadMs: a.loadMs + b.loadMs,
  promptMs: a.promptMs + b.promptMs,
  generateMs: a.generateMs + b.generateMs,
})

/**
 * Parses and validates the text of an answer. Throws an `LlmError` `invalid_output` if the answer was cut off, or if
 * the schema rejects it.
 */
export async function parseObject(step: ChatStep, schema: ResolvedSchema): Promise<unknown> {
  const { text, finishReason } = step
  const value = tryParseJson(text)
  const isCutOff = finishReason === 'length' || finishReason === 'context'
  // A number that is cut off is JSON, too.
  if (value === undefined || (isCutOff && typeof value === 'number'))
    throw new LlmError('invalid_output', `The answer is not complete JSON: ${reasonOf(step)}`, { text })
  const result = await schema.validate(value)
  if (!result.issues) return result.value
  throw new LlmError('invalid_output', `The schema rejects the answer: ${describeIssues(result.issues)}`, {
    text,
    schemaIssues: result.issues,
  })
}

function reasonOf({ finishReason, stopSequence }: ChatStep): string {
  if (stopSequence !== undefined) return `it ended at the stop sequence '${stopSequence}'.`
  return reasons[finishReason]
}

const reasons = {
  length:
    'it has reached the limit of tokens. Raise maxTokens, or bound the schema with maxLength and maxItems.',
  context: 'the context is full. Shorten the prompt, or load the model with a larger contextSize.',
  stop: 'the model ended it early.',
  'tool-calls': 'it has a tool call.',
} as const
