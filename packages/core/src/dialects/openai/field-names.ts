/** What the engine says of a field is said of the one that it came from, which is another one in each route. */
import { LlmError } from '../../errors.ts'
import type { Handler } from '../dialect.ts'
import { createFieldMapper } from '../fields.ts'

type FieldMapper = ReturnType<typeof createFieldMapper>

/** Of completions and vectors. */
export const mapCompletionField = createFieldMapper([
  [/^format\.source/, 'grammar'],
  [/^format\.schema/, 'response_format.json_schema.schema'],
  [/^format(?=$|\.)/, 'response_format'],
  [/^(tools\[\d+\])\.parameters/, '$1.function.parameters'],
  [/^inputs(?=\[)/, 'input'],
])

/** Of responses, which have no envelope around a function or a schema. */
export const mapResponsesField = createFieldMapper([
  [/^format\.source/, 'grammar'],
  [/^format(?=$|\.)/, 'text.format'],
])

/** A handler whose errors name the fields of its own route. */
export const withFieldNames =
  (mapField: FieldMapper, handler: Handler): Handler =>
  async (call, app) => {
    const mapError = (cause: unknown): LlmError => {
      const error = LlmError.from(cause)
      const { code, message, details } = error
      const param = details.param === undefined ? undefined : mapField(details.param)
      return param === details.param
        ? error
        : new LlmError(code, message, { ...details, ...(param !== undefined && { param }) })
    }
    try {
      return await handler({ ...call, onError: (error) => call.onError(mapError(error)) }, app)
    } catch (cause) {
      throw mapError(cause)
    }
  }
