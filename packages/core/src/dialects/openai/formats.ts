/**
 * Output formats. Shape: OpenAI API reference, "Structured model outputs". The fields `grammar`, `json_schema`, and
 * `schema` beside the type `json_object`, are those of llama.cpp's server.
 */
import { z } from 'zod'
import type { OutputFormat } from '../../engine/request.ts'
import { invalidRequest } from '../../errors.ts'
import { JsonObject, optional } from '../fields.ts'

export const constraintFields = { grammar: optional(z.string()), json_schema: optional(JsonObject) }
type ConstraintFields = z.output<z.ZodObject<typeof constraintFields>>

/** Fields of a named schema. Their only effect is that of `schema`. */
export const JsonSchema = z.object({
  name: optional(
    z.string().regex(/^[\w-]{1,64}$/, 'expected 1 to 64 letters, digits, underscores and dashes.'),
  ),
  schema: optional(JsonObject),
  strict: optional(z.boolean()),
})

/** Free text, and any JSON object. */
export const textFormats = [
  z.object({ type: z.literal('text') }),
  z.object({ type: z.literal('json_object'), schema: optional(JsonObject) }),
] as const
export const formatError = { error: "expected an object of the type 'text', 'json_object' or 'json_schema'." }

/** Format of completions, which nests the schema in an object. */
export const ResponseFormat = z.discriminatedUnion(
  'type',
  [
    ...textFormats,
    z
      .object({ type: z.literal('json_schema'), json_schema: JsonSchema })
      .transform(({ type, json_schema: { schema } }) => ({ type, schema })),
  ],
  formatError,
)

interface FormatFields extends ConstraintFields {
  readonly format: { readonly type: string; readonly schema?: object | undefined } | undefined
}

/**
 * Returns the output constraint. A schema is enforced even without `strict`. Throws `invalid_request` for two
 * constraints.
 *
 * @param formatField name of the field `format` in the request
 */
export function toFormat(
  { grammar, json_schema: schema, format }: FormatFields,
  formatField: string,
): OutputFormat | undefined {
  const type = format?.type ?? 'text'
  if (grammar && schema) throw cannotCombine('grammar', 'json_schema')
  if (grammar && type !== 'text') throw cannotCombine('grammar', formatField)
  if (schema && type !== 'text') throw cannotCombine('json_schema', formatField)
  if (grammar) return { type: 'grammar', source: grammar }
  const enforced = schema ?? format?.schema
  if (enforced) return { type: 'json-schema', schema: enforced }
  return type === 'text' ? undefined : { type: 'json' }
}

const cannotCombine = (param: string, other: string): Error =>
  invalidRequest(`Invalid '${param}': it cannot be combined with '${other}'.`, { param, issue: 'value' })
