/** The messages of `llm.chat()`, and their translation to messages of the engine. */
import type { GenerateResult, ToolCall } from '../../engine/events.ts'
import type { Message, Part } from '../../engine/request.ts'
import { invalidRequest, LlmError } from '../../errors.ts'
import { isRecord } from '../../util/is-record.ts'
import { tryParseJson } from '../../util/try-parse-json.ts'
import { checkFields, checkType, expected, expectRecord } from '../check-fields.ts'

/** One user message, or a whole conversation. */
export type ChatPrompt = string | readonly ChatMessage[]

/** A message of a conversation: a prompt, an answer of the model, or the result of a tool call. */
export type ChatMessage = PromptMessage | AnswerMessage | ToolMessage

interface PromptMessage {
  readonly role: 'system' | 'user'
  readonly content: string
}

/** If it is the last message, the model continues it. */
interface AnswerMessage {
  readonly role: 'assistant'
  readonly content?: string
  readonly reasoning?: string
  readonly toolCalls?: readonly ChatToolCall[]
}

/** The result of a tool call. */
export interface ToolMessage {
  readonly role: 'tool'
  /** Id of the tool call that this is the result of. */
  readonly toolCallId: string
  /** The result as text, such as JSON. */
  readonly content: string
  /** Tells the model that the call has failed. @default false */
  readonly isError?: boolean
}

/** A call of a tool that the model asks for. */
export interface ChatToolCall {
  /** Id of the call, which the message with its result repeats. */
  readonly id: string
  /** The tool that the model calls, a key of the option `tools`. */
  readonly name: string
  /** As the model wrote them. Only the tool's own `execute` gets validated arguments. */
  readonly arguments: Readonly<Record<string, unknown>>
}

/** Throws an `LlmError` `invalid_request` that names the message and the field. */
export function parsePrompt(input: unknown): readonly ChatMessage[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }]
  if (!Array.isArray(input)) throw expected('input', 'a string or a list of messages', input)
  if (input.length === 0) throw invalidRequest('input: expected at least one message.', { param: 'input' })
  const messages = input.map((message, index) => parseMessage(message, `input[${index}]`))
  checkToolResults(messages)
  return messages
}

function parseMessage(value: unknown, at: string): ChatMessage {
  const { role } = expectRecord(value, at, 'a message, such as { role, content }')
  if (typeof role !== 'string' || !Object.hasOwn(fieldsOfRole, role))
    throw expected(`${at}.role`, "'system', 'user', 'assistant' or 'tool'", role)
  const message = value as ChatMessage
  checkFields(message, fieldsOfRole[message.role], { at, kind: 'field', hints })
  checkType(message.content, `${at}.content`, 'string')
  if (message.role === 'assistant') checkAnswer(message, at)
  else if (message.content === undefined) throw expected(`${at}.content`, 'a string', undefined)
  if (message.role === 'tool') {
    if (typeof message.toolCallId !== 'string')
      throw expected(`${at}.toolCallId`, 'a string', message.toolCallId)
    checkType(message.isError, `${at}.isError`, 'boolean')
  }
  return message
}

const fieldsOfRole = {
  system: { role: true, content: true },
  user: { role: true, content: true },
  assistant: { role: true, content: true, reasoning: true, toolCalls: true },
  tool: { role: true, toolCallId: true, content: true, isError: true },
} as const

/** Names of other APIs. */
const hints = { parts: 'content', text: 'content', thinking: 'reasoning', reasoning_content: 'reasoning' }

function checkAnswer({ reasoning, toolCalls = [] }: AnswerMessage, at: string): void {
  checkType(reasoning, `${at}.reasoning`, 'string')
  if (!Array.isArray(toolCalls)) throw expected(`${at}.toolCalls`, 'a list of calls', toolCalls)
  for (const [index, call] of toolCalls.entries()) {
    const path = `${at}.toolCalls[${index}]`
    checkFields(expectRecord(call, path, 'a call, such as { id, name, arguments }'), fieldsOfCall, {
      at: path,
      kind: 'field',
      hints: { input: 'arguments', args: 'arguments' },
    })
    for (const name of ['id', 'name'])
      if (typeof call[name] !== 'string') throw expected(`${path}.${name}`, 'a string', call[name])
    expectRecord(call.arguments, `${path}.arguments`)
  }
}

const fieldsOfCall = { id: true, name: true, arguments: true } as const

/** Chat templates would render a call without its result wrongly, but without an error. */
function checkToolResults(messages: readonly ChatMessage[]): void {
  let open = new Set<string>()
  for (const [index, message] of [...messages, undefined].entries()) {
    if (message?.role === 'tool') {
      if (!open.delete(message.toolCallId))
        throw invalidRequest(
          `input[${index}].toolCallId: the assistant message before has no open call with this id.`,
          { param: `input[${index}].toolCallId`, issue: 'value' },
        )
      continue
    }
    const [missing] = open
    if (missing !== undefined)
      throw invalidRequest(
        `input[${index}]: expected a message { role: 'tool', toolCallId: '${missing}', content } for each tool call.`,
        { param: `input[${index}]`, issue: 'missing' },
      )
    open = new Set(message?.role === 'assistant' ? message.toolCalls?.map(({ id }) => id) : [])
  }
}

export function toEngineMessage(message: ChatMessage): Message {
  switch (message.role) {
    case 'assistant': {
      const { content = '', reasoning = '', toolCalls = [] } = message
      const calls = toolCalls.map((call) => ({ ...call, arguments: JSON.stringify(call.arguments) }))
      return toEngineAnswer({ text: content, reasoning, toolCalls: calls })
    }
    case 'tool': {
      const { toolCallId: id, content, isError } = message
      const result = { id, content: [toText(content)], ...(isError && { isError }) }
      return { role: 'tool', content: [{ type: 'tool-result', ...result }] }
    }
    default:
      return { role: message.role, content: [toText(message.content)] }
  }
}

/** Keeps the arguments as the model wrote them, so that the next prompt begins with the same tokens. */
export const toEngineAnswer = ({
  text,
  reasoning = '',
  toolCalls = [],
}: Pick<GenerateResult, 'text' | 'reasoning' | 'toolCalls'>): Message => ({
  role: 'assistant',
  content: [
    ...(reasoning === '' ? [] : [{ type: 'reasoning', text: reasoning } as const]),
    ...(text === '' && toolCalls.length > 0 ? [] : [toText(text)]),
    ...toolCalls.map((call) => ({ type: 'tool-call', ...call }) as const),
  ],
})

const toText = (text: string): Extract<Part, { type: 'text' | 'reasoning' }> => ({ type: 'text', text })

export const toAnswerMessage = (
  { text, reasoning }: Pick<GenerateResult, 'text' | 'reasoning'>,
  toolCalls: readonly ChatToolCall[],
): ChatMessage => ({
  role: 'assistant',
  content: text,
  ...(reasoning !== undefined && { reasoning }),
  ...(toolCalls.length > 0 && { toolCalls }),
})

/** Throws an `LlmError` `upstream` for a call whose arguments are no JSON object. No complete call has such. */
export function parseToolCall({ id, name, arguments: json }: ToolCall): ChatToolCall {
  const args = tryParseJson(json)
  if (!isRecord(args))
    throw new LlmError('upstream', `The arguments of a call of '${name}' are no JSON object.`)
  return { id, name, arguments: args }
}
