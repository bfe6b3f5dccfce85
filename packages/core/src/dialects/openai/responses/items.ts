/** Items of a conversation. Shape: OpenAI API reference, "Create a model response", `input`. */
import { z } from 'zod'
import type * as neutral from '../../../engine/request.ts'
import { limits } from '../../../engine/request-limits.ts'
import { invalidRequest } from '../../../errors.ts'
import { optional, truncateForError } from '../../fields.ts'
import { list } from '../../parse.ts'
import { contentOf, toCall, toParts } from '../messages.ts'
import { decodeReasoning } from './opaque-reasoning.ts'

const Content = contentOf(
  ['input_text', 'output_text', 'text'],
  ['input_image', 'input_file', 'input_audio', 'computer_screenshot'],
)
const texts = (type: string) =>
  optional(list(z.object({ type: z.literal(type), text: z.string() }), { max: limits.parts }))

/** Reference to a stored item, which clients send unless they set `store: false`. */
const ItemReference = z
  .object({ type: z.literal('item_reference'), id: z.string() })
  .refine(() => false, {
    path: ['id'],
    error: "this server stores no items: send the item itself, as clients do with 'store': false.",
  })
  .transform((): never => z.NEVER)

const InputItem = z.preprocess(
  withType,
  z.discriminatedUnion(
    'type',
    [
      z.object({
        type: z.literal('message'),
        role: z.enum(['user', 'assistant', 'system', 'developer'], {
          error: "expected 'user', 'assistant', 'system' or 'developer'.",
        }),
        content: Content,
      }),
      z.object({
        type: z.literal('function_call'),
        call_id: z.string().min(1),
        name: z.string().min(1).max(limits.toolNameLength),
        arguments: z.string(),
      }),
      z.object({ type: z.literal('function_call_output'), call_id: z.string(), output: Content }),
      z.object({
        type: z.literal('reasoning'),
        summary: texts('summary_text'),
        content: texts('reasoning_text'),
        encrypted_content: optional(z.string()),
      }),
      ItemReference,
    ],
    {
      error:
        "expected an item of the type 'message', 'function_call', 'function_call_output' or 'reasoning'.",
    },
  ),
)
type InputItem = z.output<typeof InputItem>

export const Items = list(InputItem, { min: 1, max: limits.messages })

/** Adds the type, which clients may omit if other fields imply it. */
function withType(item: unknown): unknown {
  if (typeof item !== 'object' || item === null) return item
  const { type, role, id } = item as Readonly<Record<string, unknown>>
  if (type !== undefined && type !== null) return item
  if (role !== undefined) return { ...item, type: 'message' }
  return id === undefined ? item : { ...item, type: 'item_reference' }
}

/** Throws `invalid_request` for a tool result without its call, and for a tool call without a result. */
export function toMessages(input: string | readonly InputItem[]): readonly neutral.Message[] {
  if (typeof input === 'string') return [{ role: 'user', content: toParts(input) }]
  checkResults(input)
  const messages: { role: string; content: neutral.Part[] }[] = []
  for (const item of input) {
    const { role, content } = toMessage(item)
    const last = messages.at(-1)
    // All consecutive items of the assistant are one turn.
    if (role === 'assistant' && last?.role === role) last.content.push(...content)
    else messages.push({ role, content: [...content] })
  }
  return messages
}

function toMessage(item: InputItem): neutral.Message {
  switch (item.type) {
    case 'message':
      return { role: item.role === 'developer' ? 'system' : item.role, content: toParts(item.content) }
    case 'function_call':
      return { role: 'assistant', content: [toCall(item.call_id, item.name, item.arguments)] }
    case 'function_call_output':
      return {
        role: 'tool',
        content: [{ type: 'tool-result', id: item.call_id, content: toParts(item.output) }],
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
}: Extract<InputItem, { type: 'reasoning' }>): readonly neutral.Part[] {
  const text = joinTexts(content) || decodeReasoning(encrypted) || joinTexts(summary)
  return text ? [{ type: 'reasoning', text }] : []
}

const joinTexts = (parts: readonly { readonly text: string }[]): string =>
  parts.map(({ text }) => text).join('\n\n')

/**
 * Rejects tool calls without results and tool results without calls, like OpenAI. Chat templates would render
 * them wrongly, but without an error.
 */
function checkResults(items: readonly InputItem[]): void {
  const pending = new Map<string, number>()
  for (const [index, item] of items.entries()) {
    if (item.type === 'function_call') pending.set(item.call_id, index)
    if (item.type !== 'function_call_output' || pending.delete(item.call_id)) continue
    throw unmatched('No tool call found for function call output with call_id', item.call_id, index)
  }
  for (const [id, index] of pending) throw unmatched('No tool output found for function call', id, index)
}

const unmatched = (what: string, id: string, index: number) =>
  invalidRequest(`${what} ${truncateForError(id)}.`, { param: `input[${index}].call_id` })
