/**
 * What messages are made of. Shape: Anthropic API reference, "Create a Message", content blocks.
 */
import { z } from 'zod'
import { limits } from '../../engine/request.ts'
import { optional } from '../fields.ts'
import { list } from '../parse.ts'

/** What a JSON object may be, looked at no further. */
export const Dictionary = z.custom<Readonly<Record<string, unknown>>>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  { params: { issue: 'type', expected: 'object' }, error: 'expected an object.' },
)

/** Those of other servers are longer than our own. */
const Id = z.string().min(1, 'String should have at least 1 character').max(256)

const Text = z.object({ type: z.literal('text'), text: z.string() })
/** Whoever signed it: conversations come from other servers, too. */
const Thinking = z.object({ type: z.literal('thinking'), thinking: z.string() })
const ToolUse = z.object({
  type: z.literal('tool_use'),
  id: Id,
  name: z.string().min(1, 'String should have at least 1 character').max(limits.toolNameLength),
  // Some bridges send it as text.
  input: z.preprocess((value) => (typeof value === 'string' ? parsed(value) : value), Dictionary),
})

/** A block as it comes; its type says what else it has. */
const Tagged = z.looseObject({ type: z.string() })
type Tagged = z.output<typeof Tagged>

/** Where a block may stand that may not stand anywhere. */
const places: ReadonlyMap<string, 'user' | 'assistant'> = new Map([
  ['image', 'user'],
  ['document', 'user'],
  ['search_result', 'user'],
  ['container_upload', 'user'],
  ['tool_result', 'user'],
  ['tool_use', 'assistant'],
  ['thinking', 'assistant'],
  ['redacted_thinking', 'assistant'],
])
const maxTagLength = 64

/** Refuses a block that may not stand here: by its name where the API has it. */
const only =
  (tags: readonly string[], speaker?: 'user' | 'assistant') =>
  ({ type }: Tagged, context: z.RefinementCtx): void => {
    if (tags.includes(type)) return
    const refuse = (message: string, issue = 'value'): void =>
      context.addIssue({ code: 'custom', params: { issue }, message })
    const tag = type.slice(0, maxTagLength).toWellFormed()
    const place = places.get(type)
    const expected = tags.map((known) => `'${known}'`).join(', ')
    if (place === undefined)
      refuse(`Input tag '${tag}' found using 'type' does not match any of the expected tags: ${expected}`)
    else if (speaker !== undefined && place !== speaker)
      refuse(`\`${tag}\` blocks can only be in \`${place}\` messages`)
    else refuse(`A block of the type '${tag}' is not supported yet.`, 'unsupported')
  }

const contentOf = <Block extends z.ZodType>(block: Block) =>
  z.union([z.string(), list(block, { max: limits.parts })], {
    error: 'Input should be a valid string or a list of content blocks',
  })

/** Agents show images to every model; one that sees none goes on when it is told so. */
const ResultBlock = Tagged.superRefine(only(['text', 'image', 'tool_reference']))
  .transform((block) => {
    if (block.type === 'image') return { type: 'text', text: '[An image, which this model cannot see.]' }
    return block.type === 'tool_reference' ? { type: 'text', text: String(block.tool_name ?? '') } : block
  })
  .pipe(Text)
const ToolResult = z.object({
  type: z.literal('tool_result'),
  tool_use_id: Id,
  content: optional(contentOf(ResultBlock)),
  is_error: optional(z.boolean()),
})

const UserBlock = Tagged.superRefine(only(['text', 'tool_result'], 'user')).pipe(
  z.discriminatedUnion('type', [Text, ToolResult]),
)
const AssistantBlock = Tagged.superRefine((block, context) => {
  if (places.get(block.type) === 'user') only([], 'assistant')(block, context)
})
  .transform((block) =>
    ['text', 'thinking', 'tool_use'].includes(block.type)
      ? block
      : { type: 'text' as const, text: inWords(block) },
  )
  .pipe(z.discriminatedUnion('type', [Text, Thinking, ToolUse]))
const SystemBlock = Tagged.superRefine(only(['text'])).pipe(Text)

export const SystemContent = contentOf(SystemBlock)
export const Message = z.discriminatedUnion(
  'role',
  [
    z.object({ role: z.literal('user'), content: contentOf(UserBlock) }),
    z.object({ role: z.literal('assistant'), content: contentOf(AssistantBlock) }),
    z.object({ role: z.literal('system'), content: SystemContent }),
  ],
  { error: "Input should be 'user', 'assistant' or 'system'" },
)
export type Message = z.output<typeof Message>
export type Block = Exclude<Message['content'], string>[number]

export const blocksOf = (content: Message['content'] | undefined): readonly Block[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? [])

/**
 * What the tools of other servers did, for their conversations to go on here. What only they can read is left out,
 * such as encrypted thoughts.
 */
function inWords({ type, name, input, content }: Tagged): string {
  if (typeof content === 'string') return `\n${content}\n`
  if (content) return `\n${shortly(type)}: ${JSON.stringify(content, withoutEncrypted)}\n`
  return input ? `\n${shortly(name)}: ${JSON.stringify(input)}\n` : ''
}
const shortly = (name: unknown): string => String(name).slice(0, maxTagLength)
const withoutEncrypted = (key: string, value: unknown): unknown =>
  key.startsWith('encrypted_') ? undefined : value

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return json
  }
}
