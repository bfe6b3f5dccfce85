/**
 * Request shapes. Unknown fields are ignored, and so are those about caching, accounts and context editing,
 * which change no answer here; what would change it and is not built yet is refused by name.
 * Shape: Anthropic API reference, "Create a Message" and "Count tokens in a Message".
 */
import { z } from 'zod'
import { limits } from '../../engine/request.ts'
import { isEmpty, notYet, optional, StopSequence, unsupported, whole } from '../fields.ts'
import { list } from '../parse.ts'

/** The blocks that the API has besides text. */
const otherBlocks = new Set([
  'image',
  'document',
  'search_result',
  'thinking',
  'redacted_thinking',
  'tool_use',
  'tool_result',
  'server_tool_use',
  'web_search_tool_result',
  'web_fetch_tool_result',
  'code_execution_tool_result',
  'bash_code_execution_tool_result',
  'text_editor_code_execution_tool_result',
  'tool_search_tool_result',
  'container_upload',
  'mcp_tool_use',
  'mcp_tool_result',
])
const maxTagLength = 64

const TextBlock = z.object({ type: z.literal('text'), text: z.string() })
export type TextBlock = z.output<typeof TextBlock>
const Block = z
  .looseObject({ type: z.string() })
  .superRefine(({ type }, context) => {
    if (type === 'text') return
    const known = otherBlocks.has(type)
    const tag = type.slice(0, maxTagLength).toWellFormed()
    context.addIssue({
      code: 'custom',
      params: { issue: known ? 'unsupported' : 'value' },
      message: known
        ? `A block of the type '${tag}' is not supported yet.`
        : `Input tag '${tag}' found using 'type' does not match any of the expected tags: 'text'`,
    })
  })
  .pipe(TextBlock)
const Content = z.union([z.string(), list(Block, { max: limits.parts })], {
  error: 'Input should be a valid string or a list of content blocks',
})
export type Content = z.output<typeof Content>

const Message = z.object({
  role: z.enum(['user', 'assistant', 'system'], {
    error: "Input should be 'user', 'assistant' or 'system'",
  }),
  content: Content,
})

const ToolChoice = z.looseObject({
  type: z.enum(['auto', 'none', 'any', 'tool'], { error: "Input should be 'auto', 'any', 'tool' or 'none'" }),
})
const Format = z.looseObject({})

/** What makes the prompt, and what would change it. */
const prompt = {
  model: z.string().min(1, 'String should have at least 1 character').max(limits.modelLength),
  messages: list(Message, { max: limits.messages }).refine((messages) => messages.length > 0, {
    params: { issue: 'empty' },
    error: 'at least one message is required',
  }),
  system: optional(Content),

  tools: notYet(z.array(z.unknown()), '`tools`', isEmpty),
  tool_choice: notYet(ToolChoice, 'Forcing a tool', ({ type }) => type === 'auto' || type === 'none'),
  mcp_servers: notYet(z.array(z.unknown()), '`mcp_servers`', isEmpty),
  // Clients send `adaptive` to models that they do not know.
  thinking: notYet(z.looseObject({ type: z.string() }), 'Thinking', ({ type }) => type !== 'enabled'),
  output_config: optional(z.looseObject({ format: notYet(Format, 'An output format', () => false) })),
  output_format: notYet(Format, 'An output format', () => false),
  container: notYet(z.union([z.string(), z.looseObject({})]), 'A container', () => false),
}

export const CountTokensRequest = z.object(prompt)
export type CountTokensRequest = Pick<z.output<typeof CountTokensRequest>, 'model' | 'messages' | 'system'>

export const MessagesRequest = z.object({
  ...prompt,
  max_tokens: whole(0).refine((value) => value !== 0, unsupported('Filling a cache with `max_tokens` 0')),
  stream: optional(z.boolean()),
  stop_sequences: optional(
    list(StopSequence, { max: limits.stops }).refine(
      (texts) => texts.every((text) => text.trim() !== ''),
      'each stop sequence must contain non-whitespace',
    ),
  ),
  temperature: optional(z.number().min(0).max(1)),
  top_p: optional(z.number().min(0).max(1)),
  top_k: optional(whole(0, limits.int32)),
})
export type MessagesRequest = z.output<typeof MessagesRequest>
