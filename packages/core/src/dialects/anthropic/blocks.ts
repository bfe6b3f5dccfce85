/** Content blocks of messages. Shape: Anthropic API reference, "Create a Message". */
import { z } from 'zod'
import type { ImagePart } from '../../engine/request.ts'
import { limits } from '../../engine/request-limits.ts'
import { isRecord } from '../../util/is-record.ts'
import { tryParseJson } from '../../util/try-parse-json.ts'
import { JsonObject, optional, truncateForError, unsupportedUnless } from '../fields.ts'
import { list } from '../parse.ts'
import { breakpoint, type Cacheable, noBreakpoint } from './breakpoints.ts'

/** Tool call ids may come from other servers, whose ids can be longer than those of this server. */
const Id = z.string().min(1, 'String should have at least 1 character').max(256)

const Text = z
  .object({ type: z.literal('text'), text: z.string(), ...breakpoint })
  .refine(({ text, cache_control: cache }) => text !== '' || cache === undefined, {
    path: ['text'],
    error: 'cache_control cannot be set for empty text blocks',
  })
/** Signatures are not checked, since conversations may come from other servers. */
const Thinking = z.object({ type: z.literal('thinking'), thinking: z.string(), ...noBreakpoint })
const ToolUse = z.object({
  type: z.literal('tool_use'),
  id: Id,
  name: z.string().min(1, 'String should have at least 1 character').max(limits.toolNameLength),
  // Some proxies send the input as JSON text instead of an object.
  input: z.preprocess(
    (value) => (typeof value === 'string' ? (tryParseJson(value) ?? value) : value),
    JsonObject,
  ),
  ...breakpoint,
})

/** A block before validation. Its type selects the schema. */
const Tagged = z.looseObject({ type: z.string() })
type Tagged = z.output<typeof Tagged>

/** Maps each block type that only messages of one role may contain to this role. */
const rolesByBlockType: ReadonlyMap<string, 'user' | 'assistant'> = new Map([
  ['image', 'user'],
  ['document', 'user'],
  ['search_result', 'user'],
  ['container_upload', 'user'],
  ['tool_result', 'user'],
  ['tool_use', 'assistant'],
  ['thinking', 'assistant'],
  ['redacted_thinking', 'assistant'],
])

/** Rejects blocks of other types than `tags`. The error depends on whether Anthropic's API has the type. */
const allowTypes =
  (tags: readonly string[], role?: 'user' | 'assistant') =>
  ({ type }: Tagged, context: z.RefinementCtx): void => {
    if (tags.includes(type)) return
    const addIssue = (message: string, issue = 'value'): void =>
      context.addIssue({ code: 'custom', params: { issue }, message })
    const tag = truncateForError(type)
    const requiredRole = rolesByBlockType.get(type)
    const expected = tags.map((known) => `'${known}'`).join(', ')
    if (requiredRole === undefined)
      addIssue(`Input tag '${tag}' found using 'type' does not match any of the expected tags: ${expected}`)
    else if (role !== undefined && requiredRole !== role)
      addIssue(`\`${tag}\` blocks can only be in \`${requiredRole}\` messages`)
    else addIssue(`A block of the type '${tag}' is not supported yet.`, 'unsupported')
  }

const contentOf = <Block extends z.ZodType>(block: Block) =>
  z.union([z.string(), list(block, { max: limits.parts })], {
    error: 'Input should be a valid string or a list of content blocks',
  })

const TextBlock = Tagged.superRefine(allowTypes(['text'])).pipe(Text)

/** No model here cites its sources. Citations in the blocks of earlier answers are ignored. */
const noCitations = unsupportedUnless(
  z.looseObject({ enabled: optional(z.boolean()) }),
  '`citations`',
  ({ enabled }) => !enabled,
)

/** A text document. Other documents, such as PDF files, are rejected. */
const Document = z
  .object({
    type: z.literal('document'),
    title: optional(z.string()),
    context: optional(z.string()),
    citations: noCitations,
    source: Tagged.superRefine(allowTypes(['text', 'content'])).pipe(
      z.discriminatedUnion('type', [
        z.object({ type: z.literal('text'), data: z.string() }),
        z.object({ type: z.literal('content'), content: contentOf(TextBlock) }),
      ]),
    ),
    ...breakpoint,
  })
  .transform(({ source, title = '', context = '', cache_control }) => ({
    ...wrapInTag('document', [title, context, textOf(source.type === 'text' ? source.data : source.content)]),
    cache_control,
  }))
const SearchResult = z
  .object({
    type: z.literal('search_result'),
    source: z.string(),
    title: z.string(),
    content: list(TextBlock, { max: limits.parts }),
    citations: noCitations,
    ...breakpoint,
  })
  .transform(({ source, title, content, cache_control }) => ({
    ...wrapInTag('search_result', [title, source, textOf(content)]),
    cache_control,
  }))

/** Wraps a document in a tag, which separates the document from the surrounding text. */
const wrapInTag = (tag: string, texts: readonly string[]) => ({
  type: 'text' as const,
  text: `<${tag}>\n${texts.filter((text) => text !== '').join('\n\n')}\n</${tag}>\n\n`,
})
const textOf = (content: string | readonly z.output<typeof Text>[]): string =>
  typeof content === 'string' ? content : content.map(({ text }) => text).join('')

/** The source is checked when the model of the call is known. */
const Image = z
  .object({ type: z.literal('image'), source: z.unknown().optional(), ...breakpoint })
  .transform(({ source, ...block }) => ({ ...block, ...toImageSource(source) }))

function toImageSource(source: unknown): Pick<ImagePart, 'mediaType' | 'data' | 'url'> {
  const { type, media_type, data, url } = isRecord(source) ? source : {}
  const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
  return type === 'url'
    ? { mediaType: '', data: '', url: textOf(url) }
    : { mediaType: textOf(media_type), data: textOf(data) }
}

/** A block in a tool result. */
const ResultBlock = Tagged.superRefine(
  allowTypes(['text', 'image', 'tool_reference', 'document', 'search_result']),
)
  .transform((block) => {
    return block.type === 'tool_reference' ? replaceWithText(block, nameOf(block.tool_name)) : block
  })
  .pipe(z.discriminatedUnion('type', [Text, Image, Document, SearchResult]))
const ToolResult = z
  .object({
    type: z.literal('tool_result'),
    tool_use_id: Id,
    content: optional(contentOf(ResultBlock)),
    is_error: optional(z.boolean()),
    ...breakpoint,
  })
  .transform(({ content, cache_control: own, ...result }) => ({
    ...result,
    content: typeof content === 'string' ? content : content?.map(({ cache_control: _, ...block }) => block),
    // A breakpoint within a tool result applies to the end of the tool result.
    cache_control:
      own ?? (typeof content === 'string' ? undefined : content?.findLast(hasBreakpoint)?.cache_control),
  }))

const UserBlock = Tagged.superRefine(
  allowTypes(['text', 'image', 'tool_result', 'document', 'search_result'], 'user'),
).pipe(z.discriminatedUnion('type', [Text, Image, ToolResult, Document, SearchResult]))
const AssistantBlock = Tagged.superRefine((block, context) => {
  if (rolesByBlockType.get(block.type) === 'user') allowTypes([], 'assistant')(block, context)
})
  .transform((block) => {
    // Only the server that encrypted a redacted thinking block can read it, so its text becomes empty.
    if (block.type === 'redacted_thinking') return { ...block, type: 'thinking', thinking: '' }
    return ['text', 'thinking', 'tool_use'].includes(block.type)
      ? block
      : replaceWithText(block, toFallbackText(block))
  })
  .pipe(z.discriminatedUnion('type', [Text, Thinking, ToolUse]))

export const SystemContent = contentOf(TextBlock)
export const AnthropicMessage = z.discriminatedUnion(
  'role',
  [
    z.object({ role: z.literal('user'), content: contentOf(UserBlock) }),
    z.object({ role: z.literal('assistant'), content: contentOf(AssistantBlock) }),
    z.object({ role: z.literal('system'), content: SystemContent }),
  ],
  { error: "Input should be 'user', 'assistant' or 'system'" },
)
export type AnthropicMessage = z.output<typeof AnthropicMessage>
export type Block = Exclude<AnthropicMessage['content'], string>[number]

export const blocksOf = (content: AnthropicMessage['content'] | undefined): readonly Block[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? [])

const hasBreakpoint = ({ cache_control }: Cacheable): boolean => cache_control !== undefined

/** Replaces a block that the model cannot read. */
const replaceWithText = ({ cache_control }: Tagged, text: string) => ({
  type: 'text' as const,
  text,
  ...(text !== '' && { cache_control }),
})

/**
 * Returns text for a block that only other servers support, such as the result of a tool that they host. So
 * conversations with such blocks can continue here. Omits encrypted fields, which only the other server can
 * read.
 */
function toFallbackText({ type, name, input, content }: Tagged): string {
  if (typeof content === 'string') return `\n${content}\n`
  if (content) return `\n${truncateForError(type)}: ${JSON.stringify(content, withoutEncrypted)}\n`
  return input ? `\n${nameOf(name)}: ${JSON.stringify(input)}\n` : ''
}
/** Shortens a name. Returns an empty text for a value that is not a string. */
const nameOf = (name: unknown): string => (typeof name === 'string' ? truncateForError(name) : '')
const withoutEncrypted = (key: string, value: unknown): unknown =>
  key.startsWith('encrypted_') ? undefined : value
