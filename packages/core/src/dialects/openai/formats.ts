/**
 * Output formats. Shape: OpenAI API reference, "Structured model outputs". The field `schema` beside the type
 * `json_object` is that of llama.cpp's server.
 */
import { z } from 'zod'
import type { OutputFormat, ToolChoice } from '../../engine/request.ts'
import { invalidRequest } from '../../errors.ts'
import { JsonObject, optional } from '../fields.ts'
import { type Constraints, listConstraints } from './extensions/constraint-fields.ts'

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

interface FormatFields extends Constraints {
  readonly format: { readonly type: string; readonly schema?: object | undefined } | undefined
}

/** Fields of the API, for error messages. */
export interface FormatNames {
  readonly format: string
  /** Schema in a format of the type `json_schema`. */
  readonly schema: string
}

/** An output constraint, and the field of the request that contains it. */
interface Constraint {
  readonly field: string
  readonly format: OutputFormat
}

/**
 * Returns the output constraint of a request. A schema is enforced even without `strict`. Throws `invalid_request` for
 * two constraints.
 */
export function findConstraint(
  { format, ...body }: FormatFields,
  names: FormatNames,
): Constraint | undefined {
  const all = [...listConstraints(body), ...toConstraint(format, names)]
  const [first, second] = all
  if (first && second) throw cannotCombine(first.field, second.field)
  return first
}

/**
 * Returns the output constraint of a request with tools. Throws the errors of `findConstraint`, and `invalid_request` for
 * a constraint other than the API's own beside a forced tool call, which leaves no text for it.
 */
export function toFormat(
  body: FormatFields,
  names: FormatNames,
  toolMode?: ToolChoice['mode'],
): OutputFormat | undefined {
  const constraint = findConstraint(body, names)
  if (toolMode !== 'required') return constraint?.format
  if (constraint && !constraint.field.startsWith(names.format))
    throw cannotCombine(constraint.field, 'tool_choice')
  return undefined
}

function toConstraint(
  format: FormatFields['format'],
  { format: field, schema }: FormatNames,
): readonly Constraint[] {
  if (!format || format.type === 'text') return []
  if (!format.schema) return [{ field, format: { type: 'json' } }]
  return [
    {
      field: format.type === 'json_schema' ? schema : `${field}.schema`,
      format: { type: 'json-schema', schema: format.schema },
    },
  ]
}

const cannotCombine = (param: string, other: string): Error =>
  invalidRequest(`Invalid '${param}': it cannot be combined with '${other}'.`, { param, issue: 'value' })
