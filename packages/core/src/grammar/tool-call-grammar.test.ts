import { expect, test } from 'vitest'
import { GbnfMatcher } from '../../../../test/support/gbnf-matcher.ts'
import type { CallableTool, ToolCallFormat } from './constraint.ts'
import { buildOutputGrammar } from './output-grammar.ts'

const format: ToolCallFormat = {
  mark: '<call>',
  call: ['{"name": "', '", "arguments": ', '}</call>'],
  separator: '<call>',
}
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

const grammarOf = (
  tools: readonly CallableTool[],
  {
    isRequired = true,
    isParallel = true,
    ...more
  }: { isRequired?: boolean; isParallel?: boolean; format?: { type: 'json' } } = {},
) => buildOutputGrammar({ ...more, calls: { tools, format, isRequired, isParallel } }) ?? ''
const matches = (grammar: string, text: string) => new GbnfMatcher(grammar).matches(text)
const call = (name: string, json: string) => `<call>{"name": "${name}", "arguments": ${json}}</call>`

test('a required call names a tool and follows its schema', () => {
  const grammar = grammarOf([weather, clock])

  expect(matches(grammar, '<call>{"name":"weather","arguments":{"city":"Paris","days":3}}</call>')).toBe(true)
  expect(matches(grammar, call('clock', '{"zone": "UTC"}'))).toBe(true)
  expect(matches(grammar, call('weather', '{"city":"Paris","days":8}'))).toBe(false)
  expect(matches(grammar, call('weather', '{}'))).toBe(false)
  expect(matches(grammar, call('clock', '[]'))).toBe(false)
  expect(matches(grammar, call('other', '{}'))).toBe(false)
  expect(matches(grammar, `Well: ${call('clock', '{}')}`)).toBe(false)
})

test('white space is optional except between a name and a word', () => {
  const between = [' json<args>', ' <as> json <args>']
  const grammar = buildOutputGrammar({
    calls: {
      tools: [clock],
      format: { mark: 'to=', call: ['', between, ''] },
      isRequired: true,
      isParallel: true,
    },
  })

  for (const text of ['clock json<args>', 'clock <as> json <args>', 'clock<as>json<args>'])
    expect([text, matches(grammar ?? '', `to=${text}{}`)]).toEqual([text, true])
  expect(matches(grammar ?? '', 'to=clockjson<args>{}')).toBe(false)
})

test('tool names with common prefixes are distinguished', () => {
  const grammar = grammarOf(['get', 'get_a', 'get_b', 'got', '"', '😀', '😁'].map((name) => ({ name })))

  for (const name of ['get', 'get_a', 'get_b', 'got', '\\"', '😀', '😁'])
    expect([name, matches(grammar, call(name, '{}'))]).toEqual([name, true])
  for (const name of ['get_', 'g', 'get_c', '', '"'])
    expect([name, matches(grammar, call(name, '{}'))]).toEqual([name, false])
})

test('references in parameters resolve within their own tool', () => {
  const place = { type: 'object', properties: { in: { $ref: '#/$defs/place' } }, additionalProperties: false }
  const grammar = grammarOf([weather, { name: 'x', parameters: { $defs: { place }, $ref: '#/$defs/place' } }])

  expect(matches(grammar, call('x', '{"in":{"in":{}}}'))).toBe(true)
  expect(matches(grammar, call('x', '{"in":{"on":{}}}'))).toBe(false)
  expect(matches(grammar, call('x', '{"city":"Paris"}'))).toBe(false)
})

test('up to 32 parallel calls are accepted, or one call if isParallel is false', () => {
  const one = call('clock', '{}')

  expect(matches(grammarOf([clock]), one.repeat(2))).toBe(true)
  expect(matches(grammarOf([clock]), one.repeat(33))).toBe(false)
  expect(matches(grammarOf([clock], { isParallel: false }), one)).toBe(true)
  expect(matches(grammarOf([clock], { isParallel: false }), one.repeat(2))).toBe(false)
})

test.each([
  ['', true],
  ['Hello, <world>, <call', true],
  ['<<call', true],
  ['<call>', false],
  [call('weather', '{"city":"Paris"}'), true],
  [call('weather', '{"city":1}'), false],
  [`It is <b>${call('clock', '{}')}, ${call('weather', '{"city":"<call>"}')}. Or`, true],
  [`It is ${call('clock', '{}')} <call>`, false],
])('without a required call, %j is accepted: %s', (text, isTaken) => {
  expect(matches(grammarOf([weather, clock], { isRequired: false }), text)).toBe(isTaken)
})

test('no text follows a call if isParallel is false', () => {
  const grammar = grammarOf([clock], { isRequired: false, isParallel: false })

  expect(matches(grammar, `Now ${call('clock', '{}')}`)).toBe(true)
  expect(matches(grammar, `Now ${call('clock', '{}')} and`)).toBe(false)
})

test('with a format, the output is calls or formatted content', () => {
  const grammar = grammarOf([weather], { isRequired: false, format: { type: 'json' } })

  expect(matches(grammar, '{"a":1}')).toBe(true)
  expect(matches(grammar, call('weather', '{"city":"Paris"}'))).toBe(true)
  expect(matches(grammar, call('weather', '{}'))).toBe(false)
  expect(matches(grammar, 'Hello')).toBe(false)
})

test('unsupported parameter schemas accept any object unless the tool is strict', () => {
  expect(matches(grammarOf([odd]), call('odd', '{"a":1}'))).toBe(true)
  expect(matches(grammarOf([odd]), call('odd', '[]'))).toBe(false)
  expect(() => grammarOf([{ ...odd, strict: true, field: 'tools[3].parameters' }])).toThrow(
    expect.objectContaining({
      message: expect.stringContaining('"contains"'),
      details: expect.objectContaining({ param: expect.stringMatching(/^tools\[3\]\.parameters#/) }),
    }),
  )
  expect(() => grammarOf([clock, { name: 'x', parameters: { type: 'string' } }])).toThrow(
    'contradicts itself',
  )
})

test('tools with combined schemas that are too large accept any object unless strict', () => {
  const properties = Object.fromEntries(
    Array.from({ length: 900 }, (_, at) => [`p${at}`, { type: 'boolean' }]),
  )
  const large = Array.from({ length: 20 }, (_, at) => ({
    name: `large-${at}`,
    parameters: { type: 'object', properties, additionalProperties: false },
  }))
  const grammar = grammarOf([...large, { ...weather, strict: true }])

  expect(matches(grammar, call('large-7', '{"p3": "any"}'))).toBe(true)
  expect(matches(grammar, call('weather', '{"town": 1}'))).toBe(false)
  expect(() => grammarOf(large.map((tool) => ({ ...tool, strict: true })))).toThrow('too large')
})
