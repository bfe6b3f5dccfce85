/**
 * Output constraints of other local servers. Shape: llama.cpp's server, "POST /completion", `grammar` and `json_schema`;
 * vLLM, "Structured Outputs". What has no grammar is rejected, since an answer without the constraint would be wrong.
 */
import { z } from 'zod'
import type { OutputFormat } from '../../../engine/request.ts'
import { limits } from '../../../engine/request-limits.ts'
import { isDeeperThan } from '../../../models/modelfile/depth.ts'
import { isRecord } from '../../../util/is-record.ts'
import { tryParseJson } from '../../../util/try-parse-json.ts'
import { JsonObject, optional, unsupportedUnless } from '../../fields.ts'
import { list } from '../../parse.ts'

/** A JSON schema, which vLLM also takes as JSON text. */
const Schema = z
  .unknown()
  .transform((value) => (typeof value === 'string' ? parseSchema(value) : value))
  .pipe(
    z.custom<object | boolean>((value) => isRecord(value) || typeof value === 'boolean', {
      params: { issue: 'type' },
      error: 'expected a JSON schema, or its JSON text.',
    }),
  )
/** The limits are those of a schema in a request body, which is parsed before it gets here. */
function parseSchema(text: string): unknown {
  const schema = text.length <= limits.schemaLength ? tryParseJson(text) : undefined
  return isDeeperThan(schema) ? undefined : schema
}
const Text = z.string().min(1)
const Choices = list(z.string().min(1).max(limits.choiceLength), { min: 1, max: limits.choices })
const none = (): boolean => false

/** The constraints of vLLM's `structured_outputs`, by the name of each. */
const shapes = {
  json: optional(Schema),
  json_object: optional(z.boolean()),
  regex: optional(Text),
  choice: optional(Choices),
  grammar: optional(Text),
}

export const constraintFields = {
  grammar: optional(z.string()),
  json_schema: optional(JsonObject),
  guided_json: shapes.json,
  guided_regex: shapes.regex,
  guided_choice: shapes.choice,
  guided_grammar: shapes.grammar,
  guided_whitespace_pattern: unsupportedUnless(Text, 'Choosing the white space of JSON', none),
  structured_outputs: optional(
    // An unknown field may be a constraint.
    z.strictObject({
      ...shapes,
      structural_tag: unsupportedUnless(z.unknown(), 'A structural tag', none),
      whitespace_pattern: unsupportedUnless(Text, 'Choosing the white space of JSON', none),
      // JSON has no optional white space, and properties that the schema does not mention never occur.
      disable_any_whitespace: optional(z.boolean()),
      disable_additional_properties: unsupportedUnless(
        z.boolean(),
        'Overriding `additionalProperties`',
        (isDisabled) => !isDisabled,
      ),
      // Selects between implementations that vLLM has for one constraint.
      disable_fallback: optional(z.boolean()),
    }),
  ),
}
export type Constraints = z.output<z.ZodObject<typeof constraintFields>>

/** Lists the constraints of a request, each with its field. */
export function listConstraints(
  body: Constraints,
): readonly { readonly field: string; readonly format: OutputFormat }[] {
  const { structured_outputs: nested = {} } = body
  return Object.entries({
    grammar: toGrammar(body.grammar),
    json_schema: toSchema(body.json_schema),
    guided_json: toSchema(body.guided_json),
    guided_regex: toRegex(body.guided_regex),
    guided_choice: toChoice(body.guided_choice),
    guided_grammar: toGrammar(body.guided_grammar),
    'structured_outputs.json': toSchema(nested.json),
    'structured_outputs.json_object': nested.json_object ? ({ type: 'json' } as const) : undefined,
    'structured_outputs.regex': toRegex(nested.regex),
    'structured_outputs.choice': toChoice(nested.choice),
    'structured_outputs.grammar': toGrammar(nested.grammar),
  }).flatMap(([field, format]) => (format ? [{ field, format }] : []))
}

type Format<Value> = (value: Value | undefined) => OutputFormat | undefined

const toSchema: Format<object | boolean> = (schema) =>
  schema === undefined ? undefined : { type: 'json-schema', schema }
/** llama.cpp's clients send an empty grammar for none. */
const toGrammar: Format<string> = (source) => (source ? { type: 'grammar', source } : undefined)
const toRegex: Format<string> = (pattern) => (pattern === undefined ? undefined : { type: 'regex', pattern })
const toChoice: Format<readonly string[]> = (choices) =>
  choices === undefined ? undefined : { type: 'choice', choices }
