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
    forced: isRequired = true,
    parallel: isParallel = true,
    ...more
  }: { forced?: boolean; parallel?: boolean; format?: { type: 'json' } } = {},
) => buildOutputGrammar({ ...more, calls: { tools, format, isRequired, isParallel } }) ?? ''
const takes = (grammar: string, text: string) => new GbnfMatcher(grammar).matches(text)
const call = (name: string, json: string) => `<call>{"name": "${name}", "arguments": ${json}}</call>`

test('a required call names a tool and keeps to its schema', () => {
  const grammar = grammarOf([weather, clock])

  expect(takes(grammar, '<call>{"name":"weather","arguments":{"city":"Paris","days":3}}</call>')).toBe(true)
  expect(takes(grammar, call('clock', '{"zone": "UTC"}'))).toBe(true)
  expect(takes(grammar, call('weather', '{"city":"Paris","days":8}'))).toBe(false)
  expect(takes(grammar, call('weather', '{}'))).toBe(false)
  expect(takes(grammar, call('clock', '[]'))).toBe(false)
  expect(takes(grammar, call('other', '{}'))).toBe(false)
  expect(takes(grammar, `Well: ${call('clock', '{}')}`)).toBe(false)
})

test('white space may be left out, but where a name and a word would become one', () => {
  const between = [' json<args>', ' <as> json <args>']
  const grammar = buildOutputGrammar({
    calls: {
      tools: [clock],
      format: { mark: 'to=', call: ['', between, ''] },
      isRequired: true,
      isParallel: true,
    },
  })

  for (const taken of ['clock json<args>', 'clock <as> json <args>', 'clock<as>json<args>'])
    expect([taken, takes(grammar ?? '', `to=${taken}{}`)]).toEqual([taken, true])
  expect(takes(grammar ?? '', 'to=clockjson<args>{}')).toBe(false)
})

test('names that begin alike, or with each other, are told apart', () => {
  const grammar = grammarOf(['get', 'get_a', 'get_b', 'got', '"', '😀', '😁'].map((name) => ({ name })))

  for (const name of ['get', 'get_a', 'get_b', 'got', '\\"', '😀', '😁'])
    expect([name, takes(grammar, call(name, '{}'))]).toEqual([name, true])
  for (const name of ['get_', 'g', 'get_c', '', '"'])
    expect([name, takes(grammar, call(name, '{}'))]).toEqual([name, false])
})

test('each tool has its own parameters, which refer to their own definitions', () => {
  const place = { type: 'object', properties: { in: { $ref: '#/$defs/place' } }, additionalProperties: false }
  const grammar = grammarOf([weather, { name: 'x', parameters: { $defs: { place }, $ref: '#/$defs/place' } }])

  expect(takes(grammar, call('x', '{"in":{"in":{}}}'))).toBe(true)
  expect(takes(grammar, call('x', '{"in":{"on":{}}}'))).toBe(false)
  expect(takes(grammar, call('x', '{"city":"Paris"}'))).toBe(false)
})

test('several calls come one after the other, unless one is all', () => {
  const one = call('clock', '{}')

  expect(takes(grammarOf([clock]), one.repeat(2))).toBe(true)
  expect(takes(grammarOf([clock]), one.repeat(33))).toBe(false)
  expect(takes(grammarOf([clock], { parallel: false }), one)).toBe(true)
  expect(takes(grammarOf([clock], { parallel: false }), one.repeat(2))).toBe(false)
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
])('where nothing is forced, %j is taken: %s', (text, isTaken) => {
  expect(takes(grammarOf([weather, clock], { forced: false }), text)).toBe(isTaken)
})

test('behind the only call there may be, nothing comes', () => {
  const grammar = grammarOf([clock], { forced: false, parallel: false })

  expect(takes(grammar, `Now ${call('clock', '{}')}`)).toBe(true)
  expect(takes(grammar, `Now ${call('clock', '{}')} and`)).toBe(false)
})

test('with a format, an answer is calls or has that format', () => {
  const grammar = grammarOf([weather], { forced: false, format: { type: 'json' } })

  expect(takes(grammar, '{"a":1}')).toBe(true)
  expect(takes(grammar, call('weather', '{"city":"Paris"}'))).toBe(true)
  expect(takes(grammar, call('weather', '{}'))).toBe(false)
  expect(takes(grammar, 'Hello')).toBe(false)
})

test('what no grammar says is any object, unless the tool is strict', () => {
  expect(takes(grammarOf([odd]), call('odd', '{"a":1}'))).toBe(true)
  expect(takes(grammarOf([odd]), call('odd', '[]'))).toBe(false)
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

test('tools that are too large together get any object, but for the strict ones', () => {
  const properties = Object.fromEntries(
    Array.from({ length: 900 }, (_, at) => [`p${at}`, { type: 'boolean' }]),
  )
  const large = Array.from({ length: 20 }, (_, at) => ({
    name: `large-${at}`,
    parameters: { type: 'object', properties, additionalProperties: false },
  }))
  const grammar = grammarOf([...large, { ...weather, strict: true }])

  expect(takes(grammar, call('large-7', '{"p3": "any"}'))).toBe(true)
  expect(takes(grammar, call('weather', '{"town": 1}'))).toBe(false)
  expect(() => grammarOf(large.map((tool) => ({ ...tool, strict: true })))).toThrow('too large')
})
