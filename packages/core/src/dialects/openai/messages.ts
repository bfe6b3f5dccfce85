/**
 * Messages of a conversation, with tool calls and their results.
 * Shape: OpenAI API reference, "Create chat completion". Other local servers define `reasoning_content` and
 * `reasoning`.
 */
import { z } from 'zod'
import type * as neutral from '../../engine/request.ts'
import { limits } from '../../engine/request-limits.ts'
import { invalidRequest, type LlmError } from '../../errors.ts'
import { isRecord } from '../../util/is-record.ts'
import { optional, unsupported, unsupportedUnless } from '../fields.ts'
import { list } from '../parse.ts'

const Refusal = z
  .object({ type: z.literal('refusal'), refusal: z.string() })
  .transform(({ refusal }) => ({ type: 'text' as const, text: refusal }))

type PartTypes = readonly [string, ...string[]]

/**
 * Content: a text, or a list of parts.
 * @param texts types of text parts
 * @param others types of parts that are rejected as unsupported
 * @param images types of images. Their sources are checked when the model of the call is known
 */
export const contentOf = (texts: PartTypes, others: PartTypes, images?: PartTypes) => {
  const TextPart = z
    .object({ type: z.enum(texts), text: z.string() })
    .transform(({ text }) => ({ type: 'text' as const, text }))
  const OtherPart = z
    .object({ type: z.enum(others) })
    .refine(() => false, {
      params: { issue: 'unsupported' },
      error: `only text${images ? ' and images are' : ' is'} supported yet.`,
    })
    .transform((): never => z.NEVER)
  const imageParts = images ? [createImagePart(images)] : []
  const Part = z.discriminatedUnion('type', [TextPart, Refusal, OtherPart, ...imageParts])
  return z.union([z.string(), list(Part, { min: 1, max: limits.parts })], {
    error: 'expected a string or an array of parts.',
  })
}

const createImagePart = (types: PartTypes) =>
  z
    .object({ type: z.enum(types), image_url: z.unknown().optional() })
    .transform(({ image_url }) => ({ type: 'image' as const, url: toImageUrl(image_url) }))

/** Chats have an object, responses a text. */
function toImageUrl(value: unknown): string {
  const url = isRecord(value) ? value.url : value
  return typeof url === 'string' ? url : ''
}

const TextContent = contentOf(['text'], ['image_url', 'input_audio', 'file'])
const Content = contentOf(['text'], ['input_audio', 'file'], ['image_url'])
export type Content = z.output<typeof Content>

/** Type of a tool. Only functions are supported. */
export const FunctionType = z
  .enum(['function', 'custom'])
  .refine((type) => type === 'function', unsupported('A custom tool'))

const ToolCall = z.object({
  id: z.string().min(1),
  type: FunctionType,
  function: z.object({ name: z.string().min(1).max(limits.toolNameLength), arguments: z.string() }),
})

const RequestMessage = z.discriminatedUnion(
  'role',
  [
    z.object({ role: z.enum(['system', 'developer']), content: TextContent }),
    z.object({ role: z.literal('user'), content: Content }),
    z.object({
      role: z.literal('assistant'),
      content: optional(TextContent),
      reasoning_content: optional(z.string()),
      reasoning: optional(z.string()),
      tool_calls: optional(list(ToolCall, { max: limits.parts })),
      function_call: unsupportedUnless(z.looseObject({}), 'A function call', () => false),
    }),
    z.object({ role: z.literal('tool'), tool_call_id: z.string(), content: Content }),
    z
      .object({ role: z.literal('function') })
      .refine(() => false, { path: ['role'], ...unsupported('This role') })
      .transform((): never => z.NEVER),
  ],
  { error: 'expected a message of the role system, developer, user, assistant or tool.' },
)
type RequestMessage = z.output<typeof RequestMessage>
type AssistantMessage = Extract<RequestMessage, { role: 'assistant' }>

export const Messages = list(RequestMessage, { min: 1, max: limits.messages })

/** Throws `invalid_request` for a tool result without its call, and for a tool call without a result. */
export function toMessages(messages: readonly RequestMessage[]): readonly neutral.Message[] {
  checkResults(messages)
  return messages.map((message, at) => toMessage(message, (part) => `messages[${at}].content[${part}]`))
}

function toMessage(message: RequestMessage, pathOf: PathOfPart): neutral.Message {
  const content = toParts(message.content, pathOf)
  switch (message.role) {
    case 'tool':
      return { role: 'tool', content: [{ type: 'tool-result', id: message.tool_call_id, content }] }
    case 'assistant':
      return { role: 'assistant', content: [...toReasoningParts(message), ...content, ...toCalls(message)] }
    default:
      return { role: message.role === 'developer' ? 'system' : message.role, content }
  }
}

type TextPart = Extract<neutral.Part, { type: 'text' | 'reasoning' }>

/** Returns the path of a part in the request. */
export type PathOfPart = (at: number) => string

/**
 * Joins text parts with a line break, like llama.cpp's server.
 *
 * @param replacement text for models that see no images @default none: they reject images, except in results of tools
 */
export function toParts(
  content: Content | undefined,
  pathOf: PathOfPart,
  replacement?: string,
): readonly (TextPart | neutral.ImagePart)[] {
  if (content === undefined) return []
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  const parts: (TextPart | neutral.ImagePart)[] = []
  for (const [at, part] of content.entries()) {
    const last = parts.at(-1)
    if (part.type === 'image') {
      // The text that replaces an image stands on a separate line.
      const before = last?.type === 'text' ? '\n' : ''
      const after = at < content.length - 1 ? '\n' : ''
      parts.push({
        ...{ type: 'image', mediaType: '', data: '', url: part.url, param: pathOf(at) },
        ...(replacement !== undefined && { replacement: before + replacement + after }),
      })
    } else if (last?.type === 'text')
      parts[parts.length - 1] = { ...last, text: `${last.text}\n${part.text}` }
    else parts.push(part)
  }
  return parts
}

function toReasoningParts({ reasoning_content, reasoning }: AssistantMessage): readonly TextPart[] {
  const text = reasoning_content || reasoning
  return text ? [{ type: 'reasoning', text }] : []
}

const toCalls = ({ tool_calls = [] }: AssistantMessage): readonly neutral.Part[] =>
  tool_calls.map(({ id, function: { name, arguments: json } }) => toCall(id, name, json))

export const toCall = (id: string, name: string, json: string): neutral.Part => ({
  type: 'tool-call',
  id,
  name,
  // Clients send an empty text as the arguments of a tool call without arguments.
  arguments: json === '' ? '{}' : json,
})

/**
 * Rejects tool calls without results and tool results without calls, like OpenAI. Chat templates would render
 * them wrongly, but without an error.
 */
function checkResults(messages: readonly RequestMessage[]): void {
  let called: ReadonlySet<string> = new Set()
  let calledAt = 0
  const pending = new Set<string>()
  for (const [index, message] of messages.entries()) {
    if (message.role === 'tool') {
      if (!called.has(message.tool_call_id)) throw resultWithoutCall(index)
      pending.delete(message.tool_call_id)
      continue
    }
    if (pending.size > 0) throw callsWithoutResult(calledAt, pending)
    called = new Set(message.role === 'assistant' ? message.tool_calls?.map(({ id }) => id) : [])
    calledAt = index
    for (const id of called) pending.add(id)
  }
  if (pending.size > 0) throw callsWithoutResult(calledAt, pending)
}

const resultWithoutCall = (index: number): LlmError =>
  invalidRequest(
    "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.",
    { param: `messages[${index}].role` },
  )

const callsWithoutResult = (index: number, ids: ReadonlySet<string>): LlmError =>
  invalidRequest(
    `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${shorten([...ids].join(', '))}`,
    { param: `messages[${index}].role` },
  )

const shorten = (text: string): string => (text.length > 200 ? `${text.slice(0, 200)}…` : text).toWellFormed()
