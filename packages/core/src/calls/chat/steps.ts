/** Runs the steps of one call of `llm.chat()`: an answer, its tool calls, the next answer. */
import {
  answerCancelled,
  type GenerateEvent,
  type GenerateResult,
  ResultCollector,
} from '../../engine/events.ts'
import type { GenerateRequest, Message, ToolChoice } from '../../engine/request.ts'
import type { ModelOptional } from '../client.ts'
import type { PreparedChat } from './chat-options.ts'
import {
  type ChatMessage,
  parseToolCall,
  toAnswerMessage,
  toEngineAnswer,
  toEngineMessage,
} from './messages.ts'
import { openPartialJson } from './partial-json.ts'
import {
  type ChatResult,
  type ChatStep,
  type ObjectPiece,
  parseObject,
  toChatResult,
  toStep,
} from './result.ts'
import { type OnToolEnd, runToolCalls } from './tools.ts'

type AnyPiece = string | ObjectPiece<unknown>
type AnyResult = ChatResult & { readonly object?: unknown }

/**
 * Yields the pieces of a stream, and returns the result. Throws the reason of `signal` when it aborts during a tool call
 * or between two answers.
 *
 * @param generate starts one answer
 */
export async function* runSteps(
  chat: PreparedChat,
  generate: (request: ModelOptional<GenerateRequest>) => Promise<AsyncIterable<GenerateEvent>>,
  signal: AbortSignal,
  onToolEnd: OnToolEnd,
): AsyncGenerator<AnyPiece, AnyResult> {
  const { options, tools, schema } = chat
  const prompt: Message[] = [
    ...(options.system === undefined ? [] : [toEngineMessage({ role: 'system', content: options.system })]),
    ...chat.messages.map(toEngineMessage),
  ]
  const steps: ChatStep[] = []
  const added: ChatMessage[] = []
  for (;;) {
    signal.throwIfAborted()
    const answer = yield* readAnswer(await generate(toRequest(chat, prompt, steps.length)), chat)
    const calls = (answer.toolCalls ?? []).map(parseToolCall)
    prompt.push(toEngineAnswer(answer))
    added.push(toAnswerMessage(answer, calls))
    const isLast = steps.length + 1 === chat.maxSteps
    const results = isLast
      ? []
      : await runToolCalls(calls, tools, [...chat.messages, ...added], { signal, onToolEnd })
    prompt.push(...results.map(toEngineMessage))
    added.push(...results)
    const step = toStep(answer, calls, results)
    steps.push(step)
    await options.onStep?.(step)
    if (calls.length > 0 && results.length === calls.length) continue

    const open = calls.filter(({ id }) => !results.some(({ toolCallId }) => toolCallId === id))
    const result = toChatResult(steps, open, added)
    if (!schema) return result
    return { ...result, object: open.length > 0 ? undefined : await parseObject(step, schema) }
  }
}

function toRequest(
  chat: PreparedChat,
  messages: readonly Message[],
  stepIndex: number,
): ModelOptional<GenerateRequest> {
  const { options, sampling, schema, tools } = chat
  const { model, maxTokens, stop, reasoning = 'auto', onProgress } = options
  const toolChoice = toStepToolChoice(chat, stepIndex)
  const definitions = [...tools.values()].map(({ definition }) => definition)
  return {
    ...(model !== undefined && { model }),
    input: {
      kind: 'chat',
      messages: [...messages],
      ...(definitions.length > 0 && { tools: definitions, toolChoice }),
    },
    ...(maxTokens !== undefined && { maxTokens }),
    ...(stop && { stop }),
    ...(onProgress && { returnProgress: true }),
    sampling,
    reasoning,
    // The engine rejects a schema together with a forced call.
    ...(schema && toolChoice.mode !== 'required' && { format: { type: 'json-schema', schema: schema.json } }),
  }
}

/**
 * Forces a tool call in the first step only, since the model would never answer otherwise. With a schema, the last of
 * several steps has no calls, so that the result has its object.
 */
function toStepToolChoice({ toolChoice, schema, maxSteps }: PreparedChat, stepIndex: number): ToolChoice {
  if (stepIndex === 0) return toolChoice
  const { names: _, ...rest } = toolChoice
  if (schema && stepIndex + 1 === maxSteps) return { ...rest, mode: 'none' }
  return rest.mode === 'required' ? { ...rest, mode: 'auto' } : toolChoice
}

/** Yields the pieces of one answer if it is streamed. */
async function* readAnswer(
  events: AsyncIterable<GenerateEvent>,
  { options, schema }: PreparedChat,
): AsyncGenerator<AnyPiece, GenerateResult> {
  const collector = new ResultCollector()
  const partial = schema && options.stream ? await openPartialJson() : undefined
  for await (const event of events) {
    const result = collector.add(event)
    if (result) return result
    if (event.type === 'progress') {
      const { type: _, ...progress } = event
      options.onProgress?.(progress)
    }
    if (event.type !== 'text' || !options.stream) continue
    partial?.push(event.text)
    yield partial ? { text: event.text, object: partial.value } : event.text
  }
  throw answerCancelled()
}
