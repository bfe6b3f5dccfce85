/** Items of a conversation. Shape: OpenAI API reference, "Create a model response", `input`. */
import { z } from 'zod'
import type * as neutral from '../../../engine/request.ts'
import { limits } from '../../../engine/request-limits.ts'
import { invalidRequest, type LlmError } from '../../../errors.ts'
import { optional, truncateForError } from '../../fields.ts'
import { list } from '../../parse.ts'
import { contentOf, toCall, toParts } from '../messages.ts'
import { decodeReasoning } from './opaque-reasoning.ts'
import { textArgument } from './text-argument.ts'
import { toModelName } from './tools.ts'

const Content = contentOf(
  ['input_text', 'output_text', 'text'],
  ['input_file', 'input_audio'],
  ['input_image', 'computer_screenshot'],
)
const texts = (type: string) =>
  optional(list(z.object({ type: z.literal(type), text: z.string() }), { max: limits.parts }))

const callFields = {
  call_id: z.string().min(1),
  name: z.string().min(1).max(limits.toolNameLength),
  namespace: optional(z.string()),
}
const itemSchemas = [
  z.object({
    type: z.literal('message'),
    role: z.enum(['user', 'assistant', 'system', 'developer'], {
      error: "expected 'user', 'assistant', 'system' or 'developer'.",
    }),
    content: Content,
  }),
  z.object({
    type: z.literal('function_call'),
    ...callFields,
    arguments: z.string(),
  }),
  z.object({ type: z.literal('custom_tool_call'), ...callFields, input: z.string() }),
  z.object({
    type: z.enum(['function_call_output', 'custom_tool_call_output']),
    call_id: z.string(),
    output: Content,
  }),
  z.object({
    type: z.literal('reasoning'),
    summary: texts('summary_text'),
    content: texts('reasoning_text'),
    encrypted_content: optional(z.string()),
  }),
] as const
const itemError = {
  error:
    "expected an item of the type 'message', 'function_call', 'function_call_output', 'custom_tool_call', 'custom_tool_call_output' or 'reasoning'.",
}

const Item = z.preprocess(withType, z.discriminatedUnion('type', [...itemSchemas], itemError))
export type Item = z.output<typeof Item>

/** Reference to a stored item, which clients send unless they set `store: false`. */
const ItemReference = z.object({ type: z.literal('item_reference'), id: z.string() })
export const InputItem = z.preprocess(
  withType,
  z.discriminatedUnion('type', [...itemSchemas, ItemReference], itemError),
)
type InputItem = z.output<typeof InputItem>

/** Stored items. */
export const Items = list(Item, { max: limits.messages })
export const InputItems = list(InputItem, { max: limits.messages })

/** Items of an input that is one text. */
export const toTextItems = (text: string): InputItem[] =>
  text === '' ? [] : [{ type: 'message', role: 'user', content: text }]

export const isItem = (item: InputItem): item is Item => item.type !== 'item_reference'

/** Adds the type, which clients may omit if other fields imply it. */
export function withType(item: unknown): unknown {
  if (typeof item !== 'object' || item === null) return item
  const { type, role, id } = item as Readonly<Record<string, unknown>>
  if (type !== undefined && type !== null) return item
  if (role !== undefined) return { ...item, type: 'message' }
  return id === undefined ? item : { ...item, type: 'item_reference' }
}

/**
 * Throws `invalid_request` for a tool result without its call, and for a tool call without a result.
 *
 * @param history items before those of the request
 */
export function toMessages(history: readonly Item[], input: readonly Item[]): readonly neutral.Message[] {
  const items = [...history, ...input]
  checkResults(items, history.length)
  const messages: { role: string; content: neutral.Part[] }[] = []
  for (const [index, item] of items.entries()) {
    const pathOf = (field: string) =>
      index < history.length ? 'input' : `input[${index - history.length}].${field}`
    const { role, content } = toMessage(item, pathOf)
    const last = messages.at(-1)
    // All consecutive items of the assistant are one turn.
    if (role === 'assistant' && last?.role === role) last.content.push(...content)
    else messages.push({ role, content: [...content] })
  }
  return messages
}

/** Agents send images to every model. */
const imageText = '[An image, which this model cannot see.]'

/** @param pathOf returns the path of a field of the item */
function toMessage(item: Item, pathOf: (field: string) => string): neutral.Message {
  switch (item.type) {
    case 'message':
      return {
        role: item.role === 'developer' ? 'system' : item.role,
        content: toParts(item.content, (at) => pathOf(`content[${at}]`), imageText),
      }
    case 'function_call':
    case 'custom_tool_call': {
      const json =
        item.type === 'function_call' ? item.arguments : JSON.stringify({ [textArgument]: item.input })
      return {
        role: 'assistant',
        content: [toCall(item.call_id, toModelName(item.name, item.namespace), json)],
      }
    }
    case 'function_call_output':
    case 'custom_tool_call_output':
      return {
        role: 'tool',
        content: [
          {
            ...{ type: 'tool-result', id: item.call_id },
            content: toParts(item.output, (at) => pathOf(`output[${at}]`), imageText),
          },
        ],
      }
    case 'reasoning':
      return { role: 'assistant', content: toReasoningParts(item) }
  }
}

/** Reasoning text: the content, else the decoded `encrypted_content`, else the summary. */
function toReasoningParts({
  content = [],
  encrypted_content: encrypted = '',
  summary = [],
}: Extract<Item, { type: 'reasoning' }>): readonly neutral.Part[] {
  const text = joinTexts(content) || decodeReasoning(encrypted) || joinTexts(summary)
  return text ? [{ type: 'reasoning', text }] : []
}

const joinTexts = (parts: readonly { readonly text: string }[]): string =>
  parts.map(({ text }) => text).join('\n\n')

/**
 * Rejects tool calls without results and tool results without calls, like OpenAI. Chat templates would render
 * them wrongly, but without an error.
 */
function checkResults(items: readonly Item[], historyLength: number): void {
  const unmatched = (what: string, id: string, index: number): LlmError =>
    invalidRequest(`${what} ${truncateForError(id)}.`, {
      param: index < historyLength ? 'input' : `input[${index - historyLength}].call_id`,
    })
  const pending = new Map<string, number>()
  for (const [index, item] of items.entries()) {
    if (item.type === 'function_call' || item.type === 'custom_tool_call') pending.set(item.call_id, index)
    const isOutput = item.type === 'function_call_output' || item.type === 'custom_tool_call_output'
    if (!isOutput || pending.delete(item.call_id)) continue
    throw unmatched('No tool call found for function call output with call_id', item.call_id, index)
  }
  for (const [id, index] of pending) throw unmatched('No tool output found for function call', id, index)
}
