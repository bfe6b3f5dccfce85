/**
 * Request schema of the Responses API. Fields that need stored responses are rejected, and the error names
 * the field.
 * Shape: OpenAI API reference, "Create a model response".
 */
import { z } from 'zod'
import { limits } from '../../../engine/request-limits.ts'
import { integerFrom, JsonObject, optional, truncateForError, unsupportedUnless } from '../../fields.ts'
import { list } from '../../parse.ts'
import { formatError, JsonSchema, textFormats } from '../formats.ts'
import { Effort, generationFields } from '../schema.ts'
import { Items } from './items.ts'
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
const Metadata = JsonObject.refine(
  (given) => Object.keys(given).length <= 16,
  'expected at most 16 pairs.',
).refine(
  (given) =>
    Object.entries(given).every(
      ([key, value]) => key.length <= 64 && typeof value === 'string' && value.length <= 512,
    ),
  'expected strings of at most 512 characters, with keys of at most 64 characters.',
)

const storageUnsupported = { params: { issue: 'unsupported' }, error: 'this server stores no responses.' }
/** Rejects a field that needs stored responses. */
const requiresStorage = (schema: z.ZodType) => optional(schema.refine(() => false, storageUnsupported))

export const ResponsesRequest = z.object({
  ...generationFields,
  ...toolFields,
  input: z.union([z.string().min(1, 'expected a text that is not empty.'), Items], {
    error: 'expected a text or a list of items.',
  }),
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

  previous_response_id: optional(
    z.string().refine(() => false, {
      error: ({ input }) =>
        `Previous response with id '${truncateForError(String(input))}' not found: this server does not store responses.`,
    }),
  ),
  conversation: requiresStorage(
    z.union([z.string(), z.looseObject({})], { error: 'expected an id or an object.' }),
  ),
  prompt: requiresStorage(z.looseObject({})),
  background: unsupportedUnless(z.boolean(), 'A response in the background', (value) => !value),
})
export type ResponsesRequest = z.output<typeof ResponsesRequest>

/** Whether the client asks for logprobs. */
export const wantsLogprobs = ({ include = [], top_logprobs = 0 }: ResponsesRequest): boolean =>
  top_logprobs > 0 || include.includes('message.output_text.logprobs')
