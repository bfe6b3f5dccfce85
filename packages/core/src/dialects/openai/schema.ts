/**
 * Request shapes. Unknown fields are ignored, as clients of other local servers send many;
 * known ones that are not built yet are refused by name, never ignored.
 * Shape: OpenAI API reference, "Create chat completion".
 */
import { z } from 'zod'

/** Every optional field may be null, which means absent. */
const optional = <Schema extends z.ZodType>(schema: Schema) =>
  schema
    .nullable()
    .transform((value) => value ?? undefined)
    .optional()

const unsupported = (what: string) => ({
  params: { issue: 'unsupported' },
  error: `${what} is not supported yet.`,
})
/** A field that is not built yet may still say "none", in one of the ways clients do. */
const notYet = (what: string, isNone: (value: unknown) => boolean = () => false) =>
  z
    .unknown()
    .refine((value) => value === null || isNone(value), unsupported(what))
    .optional()
const isEmpty = (value: unknown): boolean => Array.isArray(value) && value.length === 0

const TextPart = z.object({ type: z.literal('text'), text: z.string() })
const OtherPart = z
  .object({ type: z.enum(['image_url', 'input_audio', 'file', 'refusal']) })
  .refine(() => false, {
    params: { issue: 'unsupported' },
    error: 'only text is supported yet.',
  })
const Content = z.union([z.string(), z.array(z.discriminatedUnion('type', [TextPart, OtherPart])).min(1)], {
  error: 'expected a string or an array of parts.',
})

const Message = z.discriminatedUnion(
  'role',
  [
    z.object({ role: z.enum(['system', 'developer', 'user']), content: Content }),
    z.object({
      role: z.literal('assistant'),
      content: optional(Content),
      tool_calls: notYet('A tool call', isEmpty),
      function_call: notYet('A function call'),
    }),
    z
      .object({ role: z.enum(['tool', 'function']) })
      .refine(() => false, { path: ['role'], ...unsupported('This role') }),
  ],
  { error: 'expected a message of the role system, developer, user or assistant.' },
)
/** As it leaves the schema: what is refused there cannot come. */
export interface Message {
  readonly role: 'system' | 'developer' | 'user' | 'assistant'
  readonly content?: string | readonly z.output<typeof TextPart>[] | undefined
}

const atLeast = (least: number) =>
  z.int().refine((value) => value >= least, {
    params: { issue: 'integer_too_small' },
    error: `expected a whole number from ${least} up.`,
  })
const tokenCount = atLeast(1)

export const ChatCompletionRequest = z.object({
  model: z.string().min(1),
  messages: z.array(Message).min(1),
  stream: optional(z.boolean()),
  stream_options: optional(z.object({ include_usage: optional(z.boolean()) })),
  max_completion_tokens: optional(tokenCount),
  // Other local servers take -1 as "no limit", and their users send it.
  max_tokens: z.preprocess((value) => (value === -1 ? undefined : value), optional(tokenCount)),
  temperature: optional(z.number().min(0).max(2)),
  top_p: optional(z.number().min(0).max(1)),
  stop: optional(z.union([z.string(), z.array(z.string())])),
  seed: optional(z.int()),
  frequency_penalty: optional(z.number().min(-2).max(2)),
  presence_penalty: optional(z.number().min(-2).max(2)),
  logit_bias: optional(
    z.record(z.string().regex(/^\d+$/, 'a key has to be the id of a token.'), z.number().min(-100).max(100)),
  ),
  // Not OpenAI's, but understood by the other local servers.
  top_k: optional(atLeast(0)),
  min_p: optional(z.number().min(0).max(1)),
  repeat_penalty: optional(z.number().min(0)),

  n: notYet('More than one choice', (value) => value === 1),
  logprobs: notYet('`logprobs`', (value) => value === false),
  top_logprobs: notYet('`top_logprobs`', (value) => value === 0),
  response_format: notYet('A response format', (value) => (value as { type?: unknown }).type === 'text'),
  tools: notYet('`tools`', isEmpty),
  tool_choice: notYet('`tool_choice`', (value) => value === 'none' || value === 'auto'),
  functions: notYet('`functions`', isEmpty),
  function_call: notYet('`function_call`', (value) => value === 'none' || value === 'auto'),
  modalities: notYet(
    'Output other than text',
    (value) => Array.isArray(value) && value.every((one) => one === 'text'),
  ),
})
export type ChatCompletionRequest = z.output<typeof ChatCompletionRequest>
