/** Converts the schemas of validation libraries to JSON Schema. */
import { toJSONSchema } from 'zod'
import { invalidRequest } from '../../errors.ts'
import { isRecord } from '../../util/is-record.ts'
import type { JsonSchema } from './json-schema.ts'
import type { StandardSchema } from './standard-schema.ts'

/**
 * Returns the JSON Schema of what a schema accepts, before its transforms and defaults. Throws an `LlmError`
 * `invalid_request` if there is none.
 *
 * @param param the option that contains the schema
 */
export async function toJsonSchema(schema: StandardSchema, param: string): Promise<JsonSchema> {
  const { vendor } = schema['~standard']
  let json: JsonSchema | undefined
  try {
    json = await convert(schema, vendor)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw invalidRequest(`${param}: the ${vendor} schema has no JSON Schema. ${reason}`, { param })
  }
  if (json === undefined)
    throw invalidRequest(
      `${param}: ${vendor} offers no JSON Schema for this schema. Use zod 4, arktype, or valibot with @valibot/to-json-schema, or write jsonSchema({ … }).`,
      { param },
    )
  return vendor === 'zod' ? (withoutZodFormats(json) as JsonSchema) : json
}

interface ArktypeOptions {
  readonly fallback: {
    readonly default: (lost: { readonly code: string; readonly base: JsonSchema }) => JsonSchema
  }
}

interface Convertible {
  /** Standard JSON Schema: https://standardschema.dev/json-schema */
  readonly '~standard': { readonly jsonSchema?: { input(options: { readonly target: string }): JsonSchema } }
  /** arktype: what the schema accepts, before its transforms. */
  readonly in?: { toJsonSchema(options: ArktypeOptions): JsonSchema }
}

async function convert(schema: StandardSchema, vendor: string): Promise<JsonSchema | undefined> {
  const { '~standard': standard, in: input } = schema as Convertible
  if (vendor === 'arktype' && input) return input.toJsonSchema({ fallback: { default: withoutConstraint } })
  if (standard.jsonSchema) return standard.jsonSchema.input({ target: 'draft-2020-12' })
  if (vendor === 'zod' && '_zod' in schema) return convertZod(schema)
  if (vendor === 'valibot') return convertValibot(schema)
  return undefined
}

/** What no JSON value satisfies, by arktype's names. arktype's Standard JSON Schema turns these into `{}`. */
const impossible: ReadonlySet<string> = new Set(['date', 'domain', 'proto', 'unit', 'symbolKey'])

/** Omits a constraint that JSON Schema cannot express. The validation of the answer checks it. */
function withoutConstraint({ code, base }: { readonly code: string; readonly base: JsonSchema }): JsonSchema {
  if (impossible.has(code)) throw new Error(`JSON cannot express its '${code}'.`)
  return base
}

/** For zod/mini, and for zod before 4.2. */
const convertZod = (schema: StandardSchema): JsonSchema =>
  toJSONSchema(schema as never, { io: 'input' }) as JsonSchema

async function convertValibot(schema: StandardSchema): Promise<JsonSchema> {
  const library = await import('@valibot/to-json-schema').catch(() => {
    throw new Error('Install @valibot/to-json-schema.')
  })
  return library.toJsonSchema(schema as never, { typeMode: 'input' }) as JsonSchema
}

/**
 * Removes formats of which zod also writes the pattern. zod has formats of its own, such as `starts_with`, which no
 * grammar knows.
 */
function withoutZodFormats(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutZodFormats)
  if (!isRecord(schema)) return schema
  const isRedundant = typeof schema.format === 'string' && typeof schema.pattern === 'string'
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([keyword]) => keyword !== 'format' || !isRedundant)
      .map(([keyword, value]) => [keyword, values.has(keyword) ? value : withoutZodFormats(value)]),
  )
}

/** Keywords whose values are no schemas. */
const values: ReadonlySet<string> = new Set(['const', 'default', 'enum', 'examples'])
