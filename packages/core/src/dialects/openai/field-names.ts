/** Maps the engine's field names in errors to the field names of each route. */
import { LlmError } from '../../errors.ts'
import type { ModelHandler } from '../dialect.ts'
import { createFieldMapper, upstreamMappings } from '../fields.ts'

type FieldMapper = ReturnType<typeof createFieldMapper>

const sharedMappings = [[/^toolChoice\.parallel$/, 'parallel_tool_calls'] as const, ...upstreamMappings()]

/** Maps field names for completions and embeddings. */
export const mapCompletionField = createFieldMapper([
  [/^format(?=$|\.)/, 'response_format'],
  [/^(tools\[\d+\])\.(?=parameters|strict)/, '$1.function.'],
  [/^inputs(?=\[)/, 'input'],
  [/^maxTokens$/, 'max_tokens'],
  [/^promptEnd$/, 'add_generation_prompt'],
  [/^promptLogprobs$/, 'echo'],
  [/^templateOptions\.reasoning_effort$/, 'reasoning_effort'],
  [/^templateOptions(?=\.)/, 'chat_template_kwargs'],
  ...sharedMappings,
])

/** Maps field names for the Responses API, where functions and schemas are not nested in an envelope. */
export const mapResponsesField = createFieldMapper([
  [/^format(?=$|\.)/, 'text.format'],
  [/^maxTokens$/, 'max_output_tokens'],
  [/^promptEnd$/, 'add_generation_prompt'],
  [/^templateOptions\.reasoning_effort$/, 'reasoning.effort'],
  ...sharedMappings,
])

/** Maps the limit and the output constraint to the fields that a request has for them. Both have several names. */
export const createBodyFieldMapper = ({
  limit,
  constraint,
}: {
  readonly limit?: string | undefined
  readonly constraint: { readonly field: string } | undefined
}): FieldMapper =>
  createFieldMapper([
    ...(limit === undefined ? [] : [[/^maxTokens$/, limit] as const]),
    ...(constraint ? [[/^format(\.(schema|source|pattern|choices))?/, constraint.field] as const] : []),
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
