import { expect, test } from 'vitest'
import { GbnfMatcher } from '../../../../test/support/gbnf-matcher.ts'
import type { OutputConstraint } from './constraint.ts'
import { buildOutputGrammar } from './output-grammar.ts'

const matches = (constraint: OutputConstraint, text: string) =>
  new GbnfMatcher(buildOutputGrammar(constraint) ?? '').matches(text)
const schema: OutputConstraint['format'] = { type: 'json-schema', schema: { type: 'boolean' } }

test('no grammar is built if any text is valid', () => {
  expect(buildOutputGrammar({})).toBeUndefined()
  expect(
    buildOutputGrammar({
      calls: { tools: [{ name: 'a' }], format: { call: ['', '', ''] }, isRequired: false, isParallel: true },
    }),
  ).toBeUndefined()
})

test('format json accepts objects, and a schema accepts its values', () => {
  expect(matches({ format: { type: 'json' } }, '{"a": [1, null]}')).toBe(true)
  expect(matches({ format: { type: 'json' } }, '[]')).toBe(false)
  expect(matches({ format: schema }, 'true')).toBe(true)
  expect(matches({ format: schema }, '"true"')).toBe(false)
})

test('rule names of user grammars do not clash with generated ones', () => {
  const source = 'root ::= answer-1 | text-0 root\nanswer-1 ::= "yes" | "no"\ntext-0 ::= "very "'
  const reasoningBlock = { open: '<think>', close: '</think>', isOpen: true }

  expect(matches({ format: { type: 'grammar', source } }, 'very very yes')).toBe(true)
  expect(matches({ format: { type: 'grammar', source }, reasoningBlock }, 'Hm.</think>\n\nvery no')).toBe(
    true,
  )
  expect(matches({ format: { type: 'grammar', source }, reasoningBlock }, 'Hm.</think>maybe')).toBe(false)
})

test('reasoning comes first: required if the prompt opens it, otherwise optional', () => {
  const open = { open: '<think>', close: '</think>', isOpen: true }
  const possible = { ...open, isOpen: false }

  expect(matches({ format: schema, reasoningBlock: open }, 'Is it <</thin?</think>true')).toBe(true)
  expect(matches({ format: schema, reasoningBlock: open }, 'true')).toBe(false)
  expect(matches({ format: schema, reasoningBlock: possible }, '<think>Is it?</think>\n\nfalse')).toBe(true)
  expect(matches({ format: schema, reasoningBlock: possible }, 'false')).toBe(true)
  expect(matches({ format: schema, reasoningBlock: possible }, '<think>false')).toBe(false)
})

test.each([
  [
    'format.schema#/properties/a',
    { format: { type: 'json-schema', schema: { properties: { a: { contains: {} } } } } },
  ],
  ['format.source', { format: { type: 'grammar', source: 'root ::= root "a"' } }],
  ['format', { format: { type: 'grammar', source: 'root ::= "a" root' } }],
] as const)('an error in %s names the field', (param, form) => {
  expect(() => buildOutputGrammar(form as OutputConstraint)).toThrow(
    expect.objectContaining({
      code: 'invalid_request',
      details: expect.objectContaining({ param: expect.stringContaining(param) }),
    }),
  )
})

test('undeclared properties are rejected unless the schema mentions them', () => {
  const declared = { type: 'object', properties: { a: { type: 'integer' } }, required: ['b'] }
  const accepts = (schema: object, text: string) => matches({ format: { type: 'json-schema', schema } }, text)

  expect(accepts(declared, '{"a":1,"b":"any"}')).toBe(true)
  expect(accepts(declared, '{"a":1,"b":"any","c":2}')).toBe(false)
  expect(accepts({ ...declared, additionalProperties: true }, '{"a":1,"b":"any","c":2}')).toBe(true)
  expect(accepts({ ...declared, additionalProperties: { type: 'null' } }, '{"b":null,"c":null}')).toBe(true)
  expect(accepts({ ...declared, required: ['a'], minProperties: 2 }, '{"a":1,"c":2}')).toBe(true)
  expect(accepts({ ...declared, patternProperties: { '^x': { type: 'null' } } }, '{"b":1,"x1":null}')).toBe(
    true,
  )
  expect(accepts({ ...declared, patternProperties: { '^x': true } }, '{"b":1,"x1":2}')).toBe(true)
  expect(accepts({ ...declared, patternProperties: { '^x': true } }, '{"b":1,"y1":2}')).toBe(false)
  expect(accepts({ type: 'object' }, '{"c":2}')).toBe(true)
})

test('a too large parameter schema accepts any object, and an invalid schema is rejected', () => {
  const many = Object.fromEntries(Array.from({ length: 900 }, (_, at) => [`p${at}`, { type: 'string' }]))
  const large = { type: 'object', properties: many, additionalProperties: false, minProperties: 300 }
  const calling = (parameters: unknown): OutputConstraint => ({
    calls: {
      tools: [{ name: 'a', parameters }],
      format: { call: ['{"name":"', '","arguments":', '}'] },
      isRequired: true,
      isParallel: false,
    },
  })

  expect(matches(calling(large), '{"name":"a","arguments":{"any":1}}')).toBe(true)
  expect(() => buildOutputGrammar(calling('none'))).toThrow('must be an object or a boolean')
})
