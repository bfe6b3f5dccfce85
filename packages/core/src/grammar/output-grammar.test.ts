import { expect, test } from 'vitest'
import { GbnfMatcher } from '../../../../test/support/gbnf-matcher.ts'
import type { OutputConstraint } from './constraint.ts'
import { buildOutputGrammar } from './output-grammar.ts'

const takes = (form: OutputConstraint, text: string) =>
  new GbnfMatcher(buildOutputGrammar(form) ?? '').matches(text)
const schema: OutputConstraint['format'] = { type: 'json-schema', schema: { type: 'boolean' } }

test('where any text will do there is no grammar', () => {
  expect(buildOutputGrammar({})).toBeUndefined()
  expect(
    buildOutputGrammar({
      calls: { tools: [{ name: 'a' }], format: { call: ['', '', ''] }, isRequired: false, isParallel: true },
    }),
  ).toBeUndefined()
})

test('JSON is an object, a schema says what it is', () => {
  expect(takes({ format: { type: 'json' } }, '{"a": [1, null]}')).toBe(true)
  expect(takes({ format: { type: 'json' } }, '[]')).toBe(false)
  expect(takes({ format: schema }, 'true')).toBe(true)
  expect(takes({ format: schema }, '"true"')).toBe(false)
})

test('the rules of users may have any names', () => {
  const source = 'root ::= answer-1 | text-0 root\nanswer-1 ::= "yes" | "no"\ntext-0 ::= "very "'
  const reasoningBlock = { open: '<think>', close: '</think>', isOpen: true }

  expect(takes({ format: { type: 'grammar', source } }, 'very very yes')).toBe(true)
  expect(takes({ format: { type: 'grammar', source }, reasoningBlock }, 'Hm.</think>\n\nvery no')).toBe(true)
  expect(takes({ format: { type: 'grammar', source }, reasoningBlock }, 'Hm.</think>maybe')).toBe(false)
})

test('a thought comes first: always where the prompt opens it, else where the model wants to', () => {
  const open = { open: '<think>', close: '</think>', isOpen: true }
  const possible = { ...open, isOpen: false }

  expect(takes({ format: schema, reasoningBlock: open }, 'Is it <</thin?</think>true')).toBe(true)
  expect(takes({ format: schema, reasoningBlock: open }, 'true')).toBe(false)
  expect(takes({ format: schema, reasoningBlock: possible }, '<think>Is it?</think>\n\nfalse')).toBe(true)
  expect(takes({ format: schema, reasoningBlock: possible }, 'false')).toBe(true)
  expect(takes({ format: schema, reasoningBlock: possible }, '<think>false')).toBe(false)
})

test.each([
  [
    'format.schema#/properties/a',
    { format: { type: 'json-schema', schema: { properties: { a: { contains: {} } } } } },
  ],
  ['format.source', { format: { type: 'grammar', source: 'root ::= root "a"' } }],
  ['format', { format: { type: 'grammar', source: 'root ::= "a" root' } }],
] as const)('what is wrong in %s is said there', (param, form) => {
  expect(() => buildOutputGrammar(form as OutputConstraint)).toThrow(
    expect.objectContaining({
      code: 'invalid_request',
      details: expect.objectContaining({ param: expect.stringContaining(param) }),
    }),
  )
})

test('where properties are declared, no others are made up, unless the schema speaks of them', () => {
  const declared = { type: 'object', properties: { a: { type: 'integer' } }, required: ['b'] }
  const held = (schema: object, text: string) => takes({ format: { type: 'json-schema', schema } }, text)

  expect(held(declared, '{"a":1,"b":"any"}')).toBe(true)
  expect(held(declared, '{"a":1,"b":"any","c":2}')).toBe(false)
  expect(held({ ...declared, additionalProperties: true }, '{"a":1,"b":"any","c":2}')).toBe(true)
  expect(held({ ...declared, additionalProperties: { type: 'null' } }, '{"b":null,"c":null}')).toBe(true)
  expect(held({ ...declared, required: ['a'], minProperties: 2 }, '{"a":1,"c":2}')).toBe(true)
  expect(held({ ...declared, patternProperties: { '^x': { type: 'null' } } }, '{"b":1,"x1":null}')).toBe(true)
  expect(held({ ...declared, patternProperties: { '^x': true } }, '{"b":1,"x1":2}')).toBe(true)
  expect(held({ ...declared, patternProperties: { '^x': true } }, '{"b":1,"y1":2}')).toBe(false)
  expect(held({ type: 'object' }, '{"c":2}')).toBe(true)
})

test('parameters that are too large together may be any object, those that are no schema may not', () => {
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

  expect(takes(calling(large), '{"name":"a","arguments":{"any":1}}')).toBe(true)
  expect(() => buildOutputGrammar(calling('none'))).toThrow('must be an object or a boolean')
})
