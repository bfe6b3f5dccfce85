import { expect, test } from 'vitest'
import { GbnfMatcher } from '../../../../test/support/gbnf-matcher.ts'
import { type AnswerForm, answerGrammar } from './answer.ts'

const takes = (form: AnswerForm, text: string) => new GbnfMatcher(answerGrammar(form) ?? '').matches(text)
const schema: AnswerForm['format'] = { type: 'json-schema', schema: { type: 'boolean' } }

test('where any text will do there is no grammar', () => {
  expect(answerGrammar({})).toBeUndefined()
  expect(
    answerGrammar({
      calls: { tools: [{ name: 'a' }], form: { call: ['', '', ''] }, forced: false, parallel: true },
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
  const thought = { open: '<think>', close: '</think>', isOpen: true }

  expect(takes({ format: { type: 'grammar', source } }, 'very very yes')).toBe(true)
  expect(takes({ format: { type: 'grammar', source }, thought }, 'Hm.</think>\n\nvery no')).toBe(true)
  expect(takes({ format: { type: 'grammar', source }, thought }, 'Hm.</think>maybe')).toBe(false)
})

test('a thought comes first: always where the prompt opens it, else where the model wants to', () => {
  const open = { open: '<think>', close: '</think>', isOpen: true }
  const possible = { ...open, isOpen: false }

  expect(takes({ format: schema, thought: open }, 'Is it <</thin?</think>true')).toBe(true)
  expect(takes({ format: schema, thought: open }, 'true')).toBe(false)
  expect(takes({ format: schema, thought: possible }, '<think>Is it?</think>\n\nfalse')).toBe(true)
  expect(takes({ format: schema, thought: possible }, 'false')).toBe(true)
  expect(takes({ format: schema, thought: possible }, '<think>false')).toBe(false)
})

test.each([
  [
    'format.schema#/properties/a',
    { format: { type: 'json-schema', schema: { properties: { a: { contains: {} } } } } },
  ],
  ['format.source', { format: { type: 'grammar', source: 'root ::= root "a"' } }],
  ['format', { format: { type: 'grammar', source: 'root ::= "a" root' } }],
] as const)('what is wrong in %s is said there', (param, form) => {
  expect(() => answerGrammar(form as AnswerForm)).toThrow(
    expect.objectContaining({
      code: 'invalid_request',
      details: expect.objectContaining({ param: expect.stringContaining(param) }),
    }),
  )
})
