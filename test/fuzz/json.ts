/** Generators of JSON texts, valid and unusual, for fuzzed requests. */
import fc from 'fast-check'

/** Includes lone surrogates, which `JSON.stringify` writes as escapes. */
const anyText = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.nat(0xffff).map((unit) => String.fromCharCode(unit)) }),
)
/** Generators return JSON texts, not values, because `JSON.stringify` cannot write numbers such as 1e999. */
export const asJson = (values: fc.Arbitrary<unknown>): fc.Arbitrary<string> =>
  values.map((value) => JSON.stringify(value))
const odd = fc.constantFrom(
  ...['1e999', '-1e999', '1e308', '5e-324', '-0', '1.5', '9007199254740993', '1e21', 'null', 'true', 'false'],
  ...['""', '"\\ud800"', '[]', '{}', '[[]]', '{"__proto__":{"a":1}}', '{"constructor":1}', '{"toString":1}'],
)
export const anyValue = fc.oneof(
  fc.json(),
  odd,
  fc.array(odd).map((items) => `[${items}]`),
  asJson(fc.oneof(anyText, fc.double(), fc.integer(), fc.array(anyText))),
)
export const mostly = (likely: fc.Arbitrary<string>, weight = 40): fc.Arbitrary<string> =>
  fc.oneof({ weight, arbitrary: likely }, { weight: 1, arbitrary: anyValue })
export const object = (entries: readonly (readonly [key: string, value: string])[]): string =>
  `{${entries.map(([key, value]) => `${JSON.stringify(key)}:${value}`)}}`
export const list = (items: fc.Arbitrary<string>, lengths: fc.ArrayConstraints = {}): fc.Arbitrary<string> =>
  fc.array(items, { minLength: 1, maxLength: 4, ...lengths }).map((all) => `[${all}]`)

export const text = asJson(anyText)
export const numbers = (min: number, max: number) => asJson(fc.double({ min, max, noNaN: true }))

/** Likely valid values, by field name. */
export type Values = Readonly<Record<string, fc.Arbitrary<string>>>

/** Generates a random field, mostly with a valid value. A larger `weight` makes invalid values rarer. */
export const oneOf = (fields: Values, weight: number): fc.Arbitrary<readonly [key: string, value: string]> =>
  fc.oneof(
    ...Object.entries(fields).map(([name, likely]) => fc.tuple(fc.constant(name), mostly(likely, weight))),
  )

export const anyJson = (fields: Values): fc.Arbitrary<string> =>
  fc.oneof(fc.json(), fc.array(oneOf(fields, 1)).map(object))
export const anyBytes = fc.uint8Array({ maxLength: 200 })
