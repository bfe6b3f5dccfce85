/** Maps the engine's field names in errors to the field names of each route. */
import { LlmError } from '../../errors.ts'
import type { ModelHandler } from '../dialect.ts'
import { createFieldMapper } from '../fields.ts'
import type { ChatCompletionRequest } from './schema.ts'

type FieldMapper = ReturnType<typeof createFieldMapper>

/** Maps field names for completions and embeddings. */
export const mapCompletionField = createFieldMapper([
  [/^format\.source/, 'grammar'],
  [/^format\.schema/, 'response_format.json_schema.schema'],
  [/^format(?=$|\.)/, 'response_format'],
  [/^(tools\[\d+\])\.parameters/, '$1.function.parameters'],
  [/^inputs(?=\[)/, 'input'],
  [/^maxTokens$/, 'max_tokens'],
  [/^promptEnd$/, 'add_generation_prompt'],
])

/** Maps field names for the Responses API, where functions and schemas are not nested in an envelope. */
export const mapResponsesField = createFieldMapper([
  [/^format\.source/, 'grammar'],
  [/^format(?=$|\.)/, 'text.format'],
  [/^maxTokens$/, 'max_output_tokens'],
  [/^promptEnd$/, 'add_generation_prompt'],
])

/** Maps field names of a request that uses another field than `mapCompletionField` expects. */
export const createBodyFieldMapper = ({
  max_completion_tokens: maxTokens,
  json_schema: schema,
  response_format: format,
}: Pick<
  Partial<ChatCompletionRequest>,
  'max_completion_tokens' | 'json_schema' | 'response_format'
>): FieldMapper =>
  createFieldMapper([
    ...(maxTokens === undefined ? [] : [[/^maxTokens$/, 'max_completion_tokens'] as const]),
    ...(schema ? [[/^format\.schema/, 'json_schema'] as const] : []),
    ...(format?.type === 'json_object' ? [[/^format\.schema/, 'response_format.schema'] as const] : []),
  ])

/** Wraps a handler so that its errors name the fields of its route. */
export const withFieldNames =
  (mapField: FieldMapper, handler: ModelHandler): ModelHandler =>
  async (call) => {
    try {
      return await handler({ ...call, onError: (error) => call.onError(mapErrorField(mapField, error)) })
    } catch (cause) {
      throw mapErrorField(mapField, cause)
    }
  }

export function mapErrorField(mapField: FieldMapper, cause: unknown): LlmError {
  const error = LlmError.from(cause)
  const { code, message, details } = error
  const param = details.param === undefined ? undefined : mapField(details.param)
  return param === details.param
    ? error
    : new LlmError(code, message, { ...details, ...(param !== undefined && { param }) })
}
