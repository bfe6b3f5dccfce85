import { expect, test } from 'vitest'
import { GbnfMatcher } from '../../../../test/support/gbnf-matcher.ts'
import { argumentsGrammar, callGrammar } from './tool-choice.ts'

const weather = {
  name: 'weather',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 1, maximum: 7 } },
    required: ['city'],
    additionalProperties: false,
  },
}
const clock = { name: 'clock' }
const odd = { name: 'odd', parameters: { type: 'object', contains: {} } }

const takes = (grammar: string | undefined, text: string) => new GbnfMatcher(grammar ?? '').matches(text)

test('a required call names a tool and keeps to its schema', () => {
  const grammar = callGrammar([weather, clock], { mode: 'required' }, false)

  expect(takes(grammar, '{"name":"weather","arguments":{"city":"Paris","days":3}}')).toBe(true)
  expect(takes(grammar, '{"name": "clock", "arguments": {"zone": "UTC"}}')).toBe(true)
  expect(takes(grammar, '{"name":"weather","arguments":{"city":"Paris","days":8}}')).toBe(false)
  expect(takes(grammar, '{"name":"weather","arguments":{}}')).toBe(false)
  expect(takes(grammar, '{"name":"clock","arguments":[]}')).toBe(false)
  expect(takes(grammar, '{"name":"other","arguments":{}}')).toBe(false)
})

test('a named tool is the only one', () => {
  const grammar = callGrammar([weather, clock], { mode: 'required', names: ['clock'] }, false)

  expect(takes(grammar, '{"name":"clock","arguments":{}}')).toBe(true)
  expect(takes(grammar, '{"name":"weather","arguments":{"city":"Paris"}}')).toBe(false)
})

test('parameters refer to their own definitions', () => {
  const place = { type: 'object', properties: { in: { $ref: '#/$defs/place' } }, additionalProperties: false }
  const grammar = argumentsGrammar({ name: 'x', parameters: { $defs: { place }, $ref: '#/$defs/place' } })

  expect(takes(grammar, '{"in":{"in":{}}}')).toBe(true)
  expect(takes(grammar, '{"in":{"on":{}}}')).toBe(false)
})

test('several calls at once are a list of at least one', () => {
  const grammar = callGrammar([clock], { mode: 'auto' }, true)
  const call = '{"name":"clock","arguments":{}}'

  expect(takes(grammar, `[${call}]`)).toBe(true)
  expect(takes(grammar, `[${call}, ${call}]`)).toBe(true)
  expect(takes(grammar, '[]')).toBe(false)
  expect(takes(grammar, `[${Array.from({ length: 33 }, () => call).join(',')}]`)).toBe(false)
})

test('no call may be, or there is nothing to call', () => {
  expect(callGrammar([weather], { mode: 'none' }, true)).toBeUndefined()
  expect(callGrammar([], { mode: 'auto' }, true)).toBeUndefined()
})

test('what no grammar says is any object, unless the tool is strict', () => {
  expect(takes(argumentsGrammar(odd), '{"a":1}')).toBe(true)
  expect(takes(argumentsGrammar(odd), '[]')).toBe(false)
  expect(() => argumentsGrammar({ ...odd, strict: true })).toThrow('"contains"')
  expect(() => argumentsGrammar({ name: 'x', parameters: { type: 'string' } })).toThrow('contradicts')
})

test.each([
  ['a tool without a name', [{ name: '' }], { mode: 'auto' }, 'no name'],
  ['two of a name', [clock, clock], { mode: 'auto' }, 'two tools'],
  ['a choice of no tool', [clock], { mode: 'required', names: ['other'] }, 'no tool "other"'],
  ['a call without tools', [], { mode: 'required' }, 'there is none'],
] as const)('%s is refused', (_, tools, choice, message) => {
  expect(() => callGrammar(tools, choice, false)).toThrow(
    expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining(message) }),
  )
})
