import { describe, expect, test } from 'vitest'
import { GbnfMatcher } from '../../../../../test/support/gbnf-matcher.ts'
import { checkGrammar } from '../gbnf/check.ts'
import { schemaToGrammar } from './json-schema.ts'

const matches = (schema: unknown, ...values: readonly unknown[]) => {
  const matcher = new GbnfMatcher(schemaToGrammar(schema))
  return values.map((value) => matcher.matches(typeof value === 'string' ? value : JSON.stringify(value)))
}
const yes = (count: number) => Array.from({ length: count }, () => true)
const no = (count: number) => Array.from({ length: count }, () => false)

describe('objects', () => {
  const schema = {
    type: 'object',
    properties: { a: { type: 'integer' }, b: { type: 'boolean' }, c: { type: 'null' } },
    required: ['b'],
    additionalProperties: false,
  }

  test('list properties in order of declaration, with or without optional ones', () => {
    const values = [
      '{"b":true}',
      '{"a":1,"b":true}',
      '{"a": 1, "b": false, "c": null}',
      '{"b":true,"c":null}',
    ]
    const others = [
      '{}',
      '{"a":1}',
      '{"b":true,"a":1}',
      '{"b":true,"d":1}',
      '{"b":true,}',
      '{,"b":true}',
      '{"b":1}',
    ]

    expect(matches(schema, ...values)).toEqual(yes(values.length))
    expect(matches(schema, ...others)).toEqual(no(others.length))
  })

  test('accept undeclared properties after declared ones unless additionalProperties is false', () => {
    const open = { properties: { ab: { type: 'integer' } }, required: ['ab'] }
    const values = ['{"ab":1,"a":"x","abc":[],"":null,"\\"\\n":0}', '{"ab":1}']
    const others = ['{"ab":1,"ab":"x"}', '{"x":1}', '{"ab":1,"\\u0061b":"x"}', '{"ab":1,"a\\u0062":"x"}']

    expect(matches(open, ...values)).toEqual(yes(2))
    expect(matches(open, ...others)).toEqual(no(4))
  })

  test('respect minProperties and maxProperties', () => {
    const counted = { ...schema, required: [], minProperties: 1, maxProperties: 2 }

    expect(matches(counted, { a: 1 }, { a: 1, c: null }, { b: true, c: null })).toEqual(yes(3))
    expect(matches(counted, {}, { a: 1, b: true, c: null })).toEqual(no(2))
  })

  test('respect patternProperties and propertyNames', () => {
    const patterned = {
      patternProperties: { '^s_': { type: 'string' }, _n$: { maxLength: 2 } },
      additionalProperties: { type: 'integer' },
      propertyNames: { maxLength: 5 },
    }

    expect(matches(patterned, { s_a: 'long text' }, { s_n: 'ab' }, { x: 1 }, { x_n: true })).toEqual(yes(4))
    expect(matches(patterned, { s_a: 1 }, { s_n: 'abc' }, { x: 'a' }, { longer: 1 })).toEqual(no(4))
  })
})

describe('strings', () => {
  test('accept every JSON escape without pattern and format', () => {
    const texts = ['"\\u00e9\\ud83d\\ude00\\n\\/"', '"é😀"', '""']

    expect(matches({ type: 'string' }, ...texts)).toEqual(yes(3))
    expect(matches({ type: 'string' }, '"\n"', '"\\ud83d"', '"\\x"', '"a', "'a'")).toEqual(no(5))
  })

  test('have their length counted in characters, escaped or not', () => {
    const two = { type: 'string', minLength: 2, maxLength: 2 }

    expect(matches(two, '"ab"', '"😀é"', '"\\ud83d\\ude00\\n"')).toEqual(yes(3))
    expect(matches(two, '"a"', '"abc"', '"\\ud83d\\ude00"')).toEqual(no(3))
  })

  test('have exact length limits above 1,000', () => {
    const long = { type: 'string', minLength: 1_500, maxLength: 4_200 }
    const text = (length: number) => `"${'x'.repeat(length)}"`

    expect(matches(long, text(1_500), text(2_999), text(4_000), text(4_200))).toEqual(yes(4))
    expect(matches(long, text(1_499), text(4_201))).toEqual(no(2))
    expect(matches({ type: 'string', maxLength: 2 ** 31 - 1 }, text(5_000))).toEqual([true])
    expect(matches({ type: 'string', pattern: '.*', maxLength: 5_000 }, text(5_000), text(5_001))).toEqual([
      true,
      false,
    ])
  })

  test('respect pattern and length together', () => {
    const both = { type: 'string', pattern: '^[a-z]+( [a-z]+)*$', minLength: 3, maxLength: 7 }

    expect(matches(both, '"abc"', '"ab cd"')).toEqual(yes(2))
    expect(matches(both, '"ab"', '"ab  cd"', '"abcd efg"', '"ab c "')).toEqual(no(4))
  })
})

test('arrays respect prefixItems, items and item counts', () => {
  const tuple = {
    prefixItems: [{ type: 'string' }, { type: 'integer' }],
    items: { type: 'null' },
    minItems: 1,
    maxItems: 4,
  }

  expect(matches({ type: 'array', ...tuple }, ['a'], ['a', 1], ['a', 1, null, null])).toEqual(yes(3))
  expect(
    matches({ type: 'array', ...tuple }, [], [1], ['a', 'b'], ['a', 1, 2], ['a', 1, null, null, null]),
  ).toEqual(no(5))
})

test('enum and const accept any JSON value and combine with other keywords', () => {
  const values = [1, 'text', null, { a: [1, 'x'] }, 'texts', '😀', '😃']

  expect(matches({ enum: values }, ...values.map((value) => JSON.stringify(value)))).toEqual(yes(7))
  expect(matches({ enum: values }, '2', '"tex"', '{"a":[1]}')).toEqual(no(3))
  expect(matches({ enum: values, type: 'string', maxLength: 4 }, '"text"', '"texts"', '1')).toEqual([
    true,
    false,
    false,
  ])
})

test('undefined properties are ignored', () => {
  expect(matches({ type: 'boolean', contains: undefined }, true, 1)).toEqual([true, false])
})

test('allOf, anyOf and oneOf intersect with the keywords beside them', () => {
  const merged = {
    allOf: [
      { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] },
      { properties: { a: { minimum: 3 }, b: { const: 1 } }, additionalProperties: { type: 'string' } },
    ],
  }
  const tagged = {
    oneOf: [
      {
        type: 'object',
        properties: { kind: { const: 'x' } },
        required: ['kind'],
        additionalProperties: false,
      },
      {
        type: 'object',
        properties: { kind: { const: 'y' } },
        required: ['kind'],
        additionalProperties: false,
      },
    ],
  }

  expect(matches(merged, { a: 3, b: 1, c: 'x' }, { a: 2 }, { a: 3, b: 2 }, { a: 3, c: 1 })).toEqual([
    true,
    false,
    false,
    false,
  ])
  expect(matches(tagged, { kind: 'x' }, { kind: 'y' }, { kind: 'z' })).toEqual([true, true, false])
  expect(matches({ type: ['string', 'null'], maxLength: 1 }, '"a"', 'null', '1')).toEqual([true, true, false])
  expect(matches({ type: 'string', nullable: true }, '"a"', 'null', '1')).toEqual([true, true, false])
})

test('recursive references work if each level consumes text', () => {
  const tree = {
    type: 'object',
    properties: { name: { type: 'string' }, children: { type: 'array', items: { $ref: '#' } } },
    required: ['name'],
    additionalProperties: false,
  }

  expect(matches(tree, { name: 'a', children: [{ name: 'b', children: [] }, { name: 'c' }] })).toEqual([true])
  expect(matches(tree, { name: 'a', children: [{ children: [] }] })).toEqual([false])
})

test('$ref decodes percent-encoded JSON pointers', () => {
  const schema = {
    properties: { x: { $ref: '#/%24defs/a~1b%20c' }, y: { $ref: '#/%24defs/a%2Fproperties/b c' } },
    required: ['x', 'y'],
    additionalProperties: false,
    $defs: { 'a/b c': { const: 1 }, a: { properties: { 'b c': { const: 2 } } } },
  }

  expect(matches({ type: 'object', ...schema }, { x: 1, y: 2 }, { x: 2, y: 2 }, { x: 1, y: 1 })).toEqual([
    true,
    false,
    false,
  ])
})

test('a property name with separators is not confused with two schemas', () => {
  const inner = { type: 'object', properties: { b: { type: 'string' } }, required: ['b'] }
  const schema = {
    $defs: {
      p: { type: 'object', properties: { b: { type: 'integer' }, 'b #': { $defs: { q: inner } } } },
      q: { properties: { b: { minimum: 3 } } },
    },
    type: 'object',
    properties: {
      one: { $ref: '#/$defs/p/properties/b%20%23/$defs/q' },
      both: { allOf: [{ $ref: '#/$defs/p' }, { $ref: '#/$defs/q' }] },
    },
  }

  expect(
    matches(schema, { one: { b: 'x' }, both: { b: 3 } }, { both: { b: 'x' } }, { both: { b: 2 } }),
  ).toEqual([true, false, false])
})

test('a required const makes recursive alternatives of oneOf disjoint', () => {
  const branch = (kind: string) => ({
    type: 'object',
    properties: { child: { $ref: '#' }, kind: { const: kind } },
    required: ['child', 'kind'],
    additionalProperties: false,
  })
  const tree = { oneOf: [{ type: 'null' }, branch('x'), branch('y')] }

  expect(matches(tree, { child: { child: null, kind: 'x' }, kind: 'y' })).toEqual([true])
  expect(matches(tree, { child: { child: null, kind: 'z' }, kind: 'y' })).toEqual([false])
})

test('alternatives with a common beginning are left-factored', () => {
  const branch = (kind: string, more: object) => ({
    type: 'object',
    properties: { child: { $ref: '#' }, name: { type: 'string' }, kind: { const: kind }, ...more },
    required: ['child', 'kind'],
    additionalProperties: false,
  })
  const tree = { anyOf: [{ type: 'null' }, branch('x', { size: { type: 'integer' } }), branch('y', {})] }
  const grammar = schemaToGrammar(tree)

  expect(grammar.match(/child/g)).toHaveLength(1)
  expect(
    matches(
      tree,
      { child: { child: null, kind: 'x', size: 1 }, name: 'a', kind: 'y' },
      { child: null, kind: 'x' },
      { child: null, name: 'a', kind: 'y', size: 1 },
      { child: { child: null, kind: 'y', size: 1 }, kind: 'x' },
      { name: 'a', kind: 'x' },
      { child: null },
    ),
  ).toEqual([true, true, false, false, false, false])
})

const deep = (levels: number) => {
  let schema: object = {}
  for (let level = 0; level < levels; level++) schema = { items: schema }
  return schema
}
const chain = (length: number, link: (to: string) => object) => ({
  $defs: Object.fromEntries(
    Array.from({ length }, (_, at) => [`d${at}`, link(`#/$defs/d${at + 1}`)]).concat([[`d${length}`, {}]]),
  ),
  $ref: '#/$defs/d0',
})
const named = (count: number, schema: unknown) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`property-${at}`, schema]))

/** Description, schema, expected text of the error message, and expected `param`. */
const rejected: readonly (readonly [what: string, schema: unknown, message: string, param?: string])[] = [
  ['a string instead of a schema', 'string', 'must be an object or a boolean'],
  ['a bigint', { const: 1n }, 'cannot be serialised as JSON'],
  ['an unknown type', { type: 'nope' }, '"type" at #', '#/type'],
  ['an empty enum', { properties: { a: { enum: [] } } }, '"enum" at #/properties/a', '#/properties/a/enum'],
  ['min above max', { type: 'integer', minimum: 3, maximum: 2 }, '"minimum"', '#/minimum'],
  ['minLength above maxLength', { items: { minLength: 3, maxLength: 2 } }, '"minLength" at #/items'],
  ['false', false, 'contradicts itself'],
  [
    'a required property that is false',
    { type: 'object', properties: { a: false }, required: ['a'] },
    'contradicts',
  ],
  ['disjoint types', { allOf: [{ type: 'string' }, { type: 'null' }] }, 'contradicts'],
  ['an infinitely nested array', { type: 'array', minItems: 1, items: { $ref: '#' } }, 'contradicts'],
  ['a reference to itself', { $ref: '#' }, '"$ref"'],
  [
    'circular references',
    { $defs: { a: { $ref: '#/$defs/b' }, b: { allOf: [{ $ref: '#/$defs/a' }] } }, $ref: '#/$defs/a' },
    '"$ref"',
  ],
  ['a dangling reference', { $ref: '#/$defs/toString' }, 'does not resolve'],
  ['a remote reference', { $ref: 'https://example.org/schema' }, '"$ref"'],
  ['contains', { contains: {} }, '"contains"', '#/contains'],
  ['uniqueItems', { type: 'array', uniqueItems: true }, '"uniqueItems"'],
  ['if', { if: {} }, '"if"'],
  ['not', { not: { type: 'string' } }, '"not"'],
  ['unevaluatedProperties', { unevaluatedProperties: false }, '"unevaluatedProperties"'],
  ['dependentRequired', { dependentRequired: {} }, '"dependentRequired"'],
  ['an unknown keyword', { minimun: 3 }, '"minimun"'],
  ['oneOf that overlaps', { oneOf: [{ type: 'integer' }, { minimum: 2 }] }, '"oneOf"'],
  ['an unknown format', { format: 'colour' }, '"format"'],
  [
    'an array of items beside prefixItems',
    { type: 'array', items: [{ type: 'string' }], prefixItems: [{ type: 'null' }] },
    '"items"',
  ],
  ['a number that JSON.parse makes infinite', { const: Number.POSITIVE_INFINITY }, 'not finite'],
  [
    'a pattern beside a length that multiplies its states',
    { properties: { a: { type: 'string', pattern: '^(?:[a-z]{1,30}-){1,30}[a-z]$', maxLength: 900 } } },
    '"pattern" at #/properties/a',
    '#/properties/a/pattern',
  ],
  [
    'a format beside a length that multiplies its states',
    { items: { type: 'string', format: 'email', maxLength: 254 } },
    '"format" at #/items',
    '#/items/format',
  ],
  ['multipleOf 999', { type: 'integer', multipleOf: 999 }, '"multipleOf" at #', '#/multipleOf'],
  ['a lookahead', { pattern: '(?=a)' }, '"pattern"'],
  ['a pattern with exponentially many states', { pattern: '(a|b)*a(a|b){30}' }, '"pattern"'],
  ['an invalid pattern', { pattern: '(' }, '"pattern"'],
  ['10,000 properties', { properties: named(10_000, {}) }, '"properties"'],
  ['10,000 required names', { required: Object.keys(named(10_000, {})) }, '"required"'],
  ['a deeply nested schema', deep(5_000), 'levels deep'],
  ['a schema of a million values', { enum: Array.from({ length: 1_000_000 }, (_, at) => at) }, 'values'],
  ['a schema of a million characters', { const: 'x'.repeat(1_000_000) }, 'characters'],
  ['minItems of ten million', { type: 'array', minItems: 10_000_000 }, '"minItems"'],
  ['a fractional minLength', { minLength: 1.5 }, '"minLength"'],
  ['multipleOf 0', { multipleOf: 0 }, '"multipleOf"'],
  ['a long chain of references', chain(5_000, ($ref) => ({ $ref })), '"$ref"'],
  [
    'too many combinations',
    {
      allOf: Array.from({ length: 12 }, (_, at) => ({
        anyOf: Array.from({ length: 12 }, (_, to) => ({ minimum: at, maximum: 100 + to })),
      })),
    },
    'combinations',
  ],
  ['maxProperties of a billion', { type: 'object', maxProperties: 1e9 }, '"maxProperties"'],
  ['minProperties without declared names', { type: 'object', minProperties: 2 }, '"minProperties"'],
]

const cases = rejected.map(([what, schema, message, param]) => ({ what, schema, message, param }))

test.each(cases)('$what is rejected with a specific error within 2 s', ({ schema, message, param }) => {
  const start = performance.now()

  expect(() => schemaToGrammar(schema)).toThrow(
    expect.objectContaining({
      code: 'invalid_request',
      message: expect.stringContaining(message),
      details: expect.objectContaining(param === undefined ? {} : { param }),
    }),
  )
  expect(performance.now() - start).toBeLessThan(2_000)
})

const patterns = Array.from({ length: 400 }, (_, at) => `(.*${String.fromCharCode(97 + (at % 26))}){${at}}`)
const large: readonly (readonly [what: string, schema: unknown])[] = [
  [
    'a thousand properties',
    { type: 'object', properties: named(1_000, { type: 'string' }), additionalProperties: false },
  ],
  [
    'a thousand properties beside undeclared ones',
    { type: 'object', properties: named(1_000, { type: 'string' }) },
  ],
  [
    'a thousand counted properties',
    { type: 'object', properties: named(1_000, {}), additionalProperties: false, minProperties: 500 },
  ],
  [
    'a thousand formats',
    { type: 'object', properties: named(1_000, { format: 'date-time' }), additionalProperties: false },
  ],
  ['nested definitions', chain(5_000, ($ref) => ({ type: 'object', properties: { a: { $ref } } }))],
  ['ten thousand words', { enum: Array.from({ length: 10_000 }, (_, at) => `word-${at}`) }],
  ['hundreds of patterns', { anyOf: patterns.map((pattern) => ({ pattern })) }],
  ['intersected patterns', { allOf: patterns.slice(0, 40).map((pattern) => ({ type: 'string', pattern })) }],
  [
    '250 alternatives of oneOf',
    {
      oneOf: Array.from({ length: 250 }, (_, at) => ({
        type: 'object',
        properties: { kind: { const: at } },
        required: ['kind'],
      })),
    },
  ],
  ['long words with a common prefix', { enum: Array.from({ length: 900 }, (_, at) => 'a'.repeat(at)) }],
  [
    'a recursive schema against a deep value',
    {
      $defs: {
        a: {
          type: 'array',
          items: { anyOf: Array.from({ length: 20 }, (_, at) => ({ $ref: '#/$defs/a', minItems: at })) },
        },
      },
      $ref: '#/$defs/a',
      const: JSON.parse(`${'['.repeat(90)}1${']'.repeat(90)}`),
    },
  ],
]

test.each(large)('%s: compiled or rejected within 5 s', (_, schema) => {
  const start = performance.now()
  try {
    checkGrammar(schemaToGrammar(schema))
  } catch (error) {
    expect(error).toMatchObject({ code: 'invalid_request' })
  }

  expect(performance.now() - start).toBeLessThan(5_000)
})

test('names and pointers in error messages are truncated and well-formed', () => {
  const schema = { properties: { ['\ud800'.repeat(100_000)]: { contains: {} } } }

  expect(() => schemaToGrammar(schema)).toThrow(
    expect.objectContaining({ message: expect.stringMatching(/^.{0,600}$/su) }),
  )
})

test.each([{ maxLength: 254 }, { minLength: 6, maxLength: 40 }])(
  'mail addresses with the length %j are rejected, with a way out',
  (length) => {
    expect(() => schemaToGrammar({ type: 'string', format: 'email', ...length })).toThrow(
      'The JSON schema cannot be converted to a grammar: "format" at # is not supported: with "minLength" or "maxLength", it needs more than 4000 states. Leave them out, and check the length of the answer.',
    )
  },
)
