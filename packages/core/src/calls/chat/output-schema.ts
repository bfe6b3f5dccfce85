/** Schemas of answers and of tool arguments: a Standard Schema, or a JSON Schema. */
import { formatFieldPath, invalidRequest, type SchemaIssue } from '../../errors.ts'
import { isRecord } from '../../util/is-record.ts'
import { expected } from '../check-fields.ts'
import type { JsonSchema } from './json-schema.ts'
import {
  type InferInput,
  type InferOutput,
  isStandardSchema,
  type StandardSchema,
  type ValidationIssue,
} from './standard-schema.ts'
import { toJsonSchema } from './to-json-schema.ts'

/** A schema of zod, valibot, arktype or another library with Standard Schema, or a JSON Schema. */
export type OutputSchema = StandardSchema | JsonSchema

/** Type of a value that a schema has validated. `unknown` for a JSON Schema without `jsonSchema<T>()`. */
export type OutputOf<Schema> = Schema extends StandardSchema ? InferOutput<Schema> : unknown

/** Type of the JSON that the model generates for a schema, before validation. */
export type InputOf<Schema> = Schema extends StandardSchema ? InferInput<Schema> : unknown

/** An object that is still being generated: strings may be incomplete, and fields and entries may be missing. */
export type PartialObject<T> = T extends readonly (infer Item)[]
  ? readonly PartialObject<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]?: PartialObject<T[Key]> }
    : T

/**
 * Gives a JSON Schema a type: `jsonSchema<City>({ type: 'object', … })`. Nothing checks that both agree.
 * Answers are constrained by the schema, and not validated again.
 */
export const jsonSchema = <T = unknown>(schema: JsonSchema): StandardSchema<T> => ({
  '~standard': {
    version: 1,
    vendor: 'modelmount',
    validate: (value) => ({ value: value as T }),
    ...{ jsonSchema: { input: () => schema } },
  },
})

export interface ResolvedSchema {
  readonly json: JsonSchema
  validate(value: unknown): Promise<ValidatedValue>
}

type ValidatedValue =
  | { readonly value: unknown; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

/**
 * Finds the JSON Schema of a schema. Throws an `LlmError` `invalid_request` if the value is no schema, or has no JSON
 * Schema.
 *
 * @param param the option that contains the schema
 */
export async function resolveSchema(schema: unknown, param: string): Promise<ResolvedSchema> {
  if (!isStandardSchema(schema))
    return { json: expectJsonSchema(schema, param), validate: async (value) => ({ value }) }
  return {
    json: await toJsonSchema(schema, param),
    validate: async (value) => {
      const result = await schema['~standard'].validate(value)
      return result.issues ? { issues: result.issues.map(toSchemaIssue) } : { value: result.value }
    },
  }
}

const toSchemaIssue = ({ message, path = [] }: ValidationIssue): SchemaIssue => ({
  path: formatFieldPath(path.map((key) => (typeof key === 'object' ? key.key : key))),
  message,
})

/** At most three issues, as one sentence. */
export function describeIssues(issues: readonly SchemaIssue[]): string {
  const texts = issues.slice(0, 3).map(({ path, message }) => (path === '' ? message : `${path}: ${message}`))
  return `${texts.join('; ')}${issues.length > 3 ? `; and ${issues.length - 3} more` : ''}`
}

function expectJsonSchema(schema: unknown, param: string): JsonSchema {
  if (typeof schema !== 'boolean' && !isRecord(schema))
    throw expected(param, 'a schema of zod, valibot or arktype, or a JSON Schema', schema)
  if (Object.values(schema).some(isStandardSchema))
    throw invalidRequest(
      `${param}: expected a schema, got an object of schemas. Did you mean z.object({ … })?`,
      {
        param,
      },
    )
  return schema
}
