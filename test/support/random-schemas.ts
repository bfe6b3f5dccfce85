/** Random JSON schemas of every form that the grammars support, and a validator for their values. */
import { isDeepStrictEqual } from 'node:util'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import fc from 'fast-check'

const formats = [
  'date',
  'time',
  'date-time',
  'duration',
  'uuid',
  'ipv4',
  'ipv6',
  'hostname',
  'email',
  'uri',
  'json-pointer',
  'byte',
]
const patterns = [
  '^[a-z]+$',
  '^\\d{3}-\\d{4}$',
  'ab',
  '^(?:yes|no)$',
  '^[^"\\\\]*$',
  '^.{1,3}$',
  '\\.(?:js|ts)$',
  '^\\S+ \\S+$',
]
const name = fc.constantFrom('a', 'b', 'id', 'name', 'x y', 'é', '"q"', 'constructor')
const range = (min: number, max: number) =>
  fc
    .tuple(fc.integer({ min, max }), fc.integer({ min, max }))
    .map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const)

const { schema } = fc.letrec<{ schema: object; deep: object }>((tie) => {
  const number = fc
    .record({
      type: fc.constantFrom('integer', 'number'),
      bounds: range(-500, 500),
      kind: fc.integer({ min: 0, max: 4 }),
    })
    .map(({ type, bounds: [low, high], kind }) => ({
      type,
      ...(kind === 1 && { minimum: low }),
      ...(kind === 2 && { exclusiveMaximum: high / 4 }),
      ...(kind === 3 && { minimum: low / 8, maximum: high / 8 + 1 }),
      ...(kind === 4 && { minimum: low, multipleOf: 5 }),
    }))
  const string = fc.oneof(
    fc.constant({ type: 'string' }),
    range(0, 12).map(([minLength, maxLength]) => ({ type: 'string', minLength, maxLength })),
    fc.constantFrom(...patterns).map((pattern) => ({ type: 'string', pattern })),
    fc.constantFrom(...patterns).map((pattern) => ({ type: 'string', pattern, maxLength: 12 })),
    fc.constantFrom(...formats).map((format) => ({ type: 'string', format })),
  )
  const array = fc.oneof(
    fc
      .record({ items: tie('schema'), bounds: range(0, 4) })
      .map(({ items, bounds: [minItems, maxItems] }) => ({ type: 'array', items, minItems, maxItems })),
    fc
      .record({
        prefixItems: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }),
        items: fc.constantFrom(true, false),
      })
      .map((parts) => ({ type: 'array', ...parts })),
  )
  const object = fc
    .record({
      properties: fc.uniqueArray(fc.tuple(name, tie('schema')), { selector: ([key]) => key, maxLength: 4 }),
      required: fc.array(name, { maxLength: 3 }),
      additionalProperties: fc.oneof(fc.constantFrom(true, false, undefined), tie('schema')),
      count: fc.integer({ min: 0, max: 3 }),
    })
    .map(({ properties, required, additionalProperties, count }) => ({
      ...{ type: 'object', properties: Object.fromEntries(properties.map(([key, value]) => [key, value])) },
      required: [...new Set(required)].filter(
        (key) => additionalProperties !== false || properties.some(([other]) => other === key),
      ),
      ...(additionalProperties !== undefined && { additionalProperties }),
      ...(count === 1 && { minProperties: 1 }),
      ...(count === 2 && { maxProperties: 4 }),
    }))
  return {
    schema: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.oneof(number, string, fc.constantFrom({ type: 'boolean' }, { type: 'null' })),
      tie('deep'),
    ),
    deep: fc.oneof(
      array,
      object,
      fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
      fc.tuple(object, object).map((allOf) => ({ allOf })),
      fc.tuple(number, string).map((oneOf) => ({ oneOf })),
      fc
        .uniqueArray(fc.jsonValue({ maxDepth: 1 }), { minLength: 1, maxLength: 5 })
        .map((values) => ({ enum: values })),
      fc.jsonValue({ maxDepth: 2 }).map((value) => ({ const: value })),
    ),
  }
})

const recursive = schema.map((value) => ({
  $defs: {
    list: {
      type: 'object',
      properties: {
        value,
        next: { $ref: '#/$defs/list' },
        all: { type: 'array', items: { $ref: '#/$defs/list' } },
      },
      required: ['value'],
      additionalProperties: false,
    },
  },
  $ref: '#/$defs/list',
}))
export const anySchema = fc.oneof({ arbitrary: schema, weight: 5 }, { arbitrary: recursive, weight: 1 })

/**
 * Adds bounds to strings, arrays and objects that have none. Without bounds, small models write such values
 * until the token limit.
 */
export function bounded(schema: object): object {
  const given = Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [
      key,
      typeof value === 'object' && value !== null && key !== 'enum' && key !== 'const'
        ? Array.isArray(value)
          ? value.map((one) => (typeof one === 'object' && one !== null ? bounded(one) : one))
          : bounded(value)
        : value,
    ]),
  ) as { type?: unknown; format?: unknown; prefixItems?: readonly unknown[]; additionalProperties?: unknown }
  const { type, format, prefixItems = [], additionalProperties } = given
  if (type === 'string' && format === undefined) return { maxLength: 40, ...given }
  if (type === 'array') return { maxItems: Math.max(3, prefixItems.length), ...given }
  if (type === 'object' && additionalProperties !== false)
    return { propertyNames: { maxLength: 12 }, maxProperties: 6, ...given }
  return given
}

// A shared instance: each new one compiles JSON Schema's metaschema, which takes longer than most test
// schemas.
const ajv = new Ajv2020({ ownProperties: true, strict: false, multipleOfPrecision: 6, logger: false })
// The type declarations of ajv-formats describe a CommonJS module.
;(addFormats as unknown as (ajv: Ajv2020) => void)(ajv)
// Ajv compares values by calling their properties `toString` and `valueOf`, which a test value may define.
ajv.removeKeyword('const').addKeyword({ keyword: 'const', validate: isDeepStrictEqual })
ajv.removeKeyword('enum').addKeyword({
  keyword: 'enum',
  validate: (values: readonly unknown[], value: unknown) =>
    values.some((one) => isDeepStrictEqual(one, value)),
})

/** Compiles the schema as a server receives it. The conversion to JSON replaces -0 by 0. */
export const validator = (schema: object) => ajv.compile(JSON.parse(JSON.stringify(schema)))
