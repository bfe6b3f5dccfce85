/**
 * Request schema of the Responses API.
 * Shape: OpenAI API reference, "Create a model response".
 */
import { z } from 'zod'
import { limits } from '../../../engine/request-limits.ts'
import { integerFrom, JsonObject, optional, unsupportedUnless } from '../../fields.ts'
import { list } from '../../parse.ts'
import { otherChatFields, reasoningFields } from '../extensions/other-fields.ts'
import { promptEndFields } from '../extensions/prompt-end.ts'
import { formatError, JsonSchema, textFormats } from '../formats.ts'
import { Effort, generationFields } from '../schema.ts'
import { InputItems, toTextItems } from './items.ts'
import { toolFields } from './tools.ts'

/** Output format. Unlike in chat completions, the schema is not nested in an object `json_schema`. */
const Format = z.discriminatedUnion(
  'type',
  [
    ...textFormats,
    JsonSchema.extend({
      type: z.literal('json_schema'),
      schema: JsonObject,
      description: optional(z.string()),
    }),
  ],
  formatError,
)

/** Metadata within OpenAI's limits. The response repeats the metadata. */
export const Metadata = JsonObject.refine(
  (given) => Object.keys(given).length <= 16,
  'expected at most 16 pairs.',
).refine(
  (given) =>
    Object.entries(given).every(
      ([key, value]) => key.length <= 64 && typeof value === 'string' && value.length <= 512,
    ),
  'expected strings of at most 512 characters, with keys of at most 64 characters.',
)

const inputError = { error: 'expected a text or a list of items.' }
const Input = z.union([z.string().transform(toTextItems), InputItems], inputError)

const Conversation = z.union([z.string().transform((id) => ({ id })), z.object({ id: z.string() })], {
  error: 'expected an id or an object with an id.',
})

export const ResponsesRequest = z
  .object({
    ...generationFields,
    ...toolFields,
    ...promptEndFields,
    ...otherChatFields,
    ...reasoningFields,
    n: unsupportedUnless(integerFrom(1), 'More than one choice', (value) => value === 1),
    input: optional(Input),
    instructions: optional(z.string()),
    max_output_tokens: optional(integerFrom(1)),
    reasoning: optional(
      z.object({ effort: optional(Effort), summary: optional(z.enum(['auto', 'concise', 'detailed'])) }),
    ),
    text: optional(
      z.object({ format: optional(Format), verbosity: optional(z.enum(['low', 'medium', 'high'])) }),
    ),
    top_logprobs: optional(integerFrom(0, limits.logprobs)),
    include: optional(list(z.string(), { max: 64 })),
    truncation: optional(z.enum(['auto', 'disabled'])),
    // Extension of other local servers: variables of the chat template.
    chat_template_kwargs: optional(z.looseObject({})),
    // The response repeats these fields.
    metadata: optional(Metadata),
    max_tool_calls: optional(integerFrom(1)),
    prompt_cache_key: optional(z.string()),

    store: optional(z.boolean()),
    // Extension of Codex: `false` evaluates the prompt only, so that the next request finds it in the cache.
    generate: optional(z.boolean()),
    previous_response_id: optional(z.string()),
    conversation: optional(Conversation),
    prompt: unsupportedUnless(z.looseObject({}), 'A stored prompt', () => false),
    background: unsupportedUnless(z.boolean(), 'A response in the background', (value) => !value),
  })
  .refine(({ previous_response_id, conversation }) => previous_response_id === undefined || !conversation, {
    path: ['conversation'],
    params: { issue: 'value' },
    error: "it cannot be combined with 'previous_response_id'.",
  })
  .superRefine((body, context) => {
    const issue = findInputIssue(body)
    if (issue) context.addIssue({ code: 'custom', path: ['input'], ...issue })
  })
  .transform((body) => ({ ...body, input: body.input ?? [] }))
/** A request that continues something can be without input. The warm-up of an agent has instructions only. */
function findInputIssue({
  input,
  instructions,
  previous_response_id: previousId,
  conversation,
}: Pick<ResponsesRequest, 'instructions' | 'previous_response_id' | 'conversation'> & {
  readonly input?: z.output<typeof Input> | undefined
}) {
  if (previousId !== undefined || conversation) return undefined
  if (input === undefined) return { params: { issue: 'missing' }, message: inputError.error }
  if (input.length > 0 || instructions) return undefined
  return { params: { issue: 'empty' }, message: 'expected a text or items, not an empty input.' }
}

export type ResponsesRequest = z.output<typeof ResponsesRequest>

/** Whether the client asks for logprobs. */
export const wantsLogprobs = ({ include = [], top_logprobs = 0 }: ResponsesRequest): boolean =>
  top_logprobs > 0 || include.includes('message.output_text.logprobs')
