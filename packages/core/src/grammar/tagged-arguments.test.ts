import { expect, test } from 'vitest'
import { GbnfMatcher } from '../../../../test/support/gbnf-matcher.ts'
import type { CallableTool, ToolCallFormat } from './constraint.ts'
import { buildOutputGrammar } from './output-grammar.ts'

const format: ToolCallFormat = {
  mark: '<call>',
  call: ['', '\n', '</call>'],
  parameters: { open: '<p=', keyEnds: ['>', '>'], valueEnd: '</p>' },
}

function accepts(tools: readonly CallableTool[], text: string, given: Partial<ToolCallFormat> = {}): boolean {
  const grammar = buildOutputGrammar({
    calls: { tools, format: { ...format, ...given }, isRequired: false, isParallel: true },
  })
  return new GbnfMatcher(grammar ?? '').matches(text)
}

const acceptsValue = (schema: unknown, value: string, definitions: object = {}): boolean => {
  const parameters = { ...definitions, type: 'object', properties: { a: schema }, required: ['a'] }
  return accepts([{ name: 'f', parameters }], `<call>f<p=a>${value}</p></call>`)
}

const weather: CallableTool = {
  name: 'weather',
  parameters: {
    type: 'object',
    properties: {
      city: { type: 'string' },
      days: { type: 'integer', maximum: 7 },
      unit: { enum: ['C', 'F'] },
    },
    required: ['city', 'unit'],
  },
}

test.each([
  [true, 'Hello <cal'],
  [true, 'I see.<call>weather\n<p=city>Oslo</p><p=unit>C</p></call>'],
  [true, '<call>weather<p=city>\nOslo <b> "x"\n</p>\n<p=days>3</p>\n<p=unit>\nF\n</p>\n</call> Done.'],
  [true, '<call>weather<p=city>Oslo</p><p=unit>C</p></call><call>weather<p=city></p><p=unit>F</p></call>'],
  [false, '<call>weather</call>'],
  [false, '<call>weather<p=city>Oslo</p></call>'],
  [false, '<call>weather<p=city>Oslo</p><p=unit>K</p></call>'],
  [false, '<call>weather<p=city>Oslo</p><p=days>8</p><p=unit>C</p></call>'],
  [false, '<call>weather<p=city>Oslo</p><p=town>Oslo</p><p=unit>C</p></call>'],
  [false, '<call>moon</call>'],
])('a free call follows the schema of its tool: %j for %j', (expected, text) => {
  expect(accepts([weather], text)).toBe(expected)
})

test.each([
  [true, { type: 'array', items: { type: 'integer' } }, '[1,2]'],
  [false, { type: 'array', items: { type: 'integer' } }, '["a"]'],
  [true, { type: 'boolean' }, '\ntrue\n'],
  [false, { type: 'boolean' }, 'True'],
  [true, { type: ['string', 'null'] }, 'any text'],
  [true, { anyOf: [{ type: 'string' }, { type: 'null' }] }, 'null'],
  [true, { anyOf: [{ type: 'number' }, { type: 'null' }] }, 'null'],
  [false, { anyOf: [{ type: 'number' }, { type: 'null' }] }, 'none'],
  [true, { const: 'x' }, 'x'],
  [false, { const: 'x' }, 'y'],
  [true, {}, 'any text'],
  [true, true, 'any text'],
  [true, { type: 'array', contains: {} }, 'any text, because the keyword is unsupported'],
])('%j: the value of %j can be %j', (expected, schema, value) => {
  expect(acceptsValue(schema, value)).toBe(expected)
})

test('a value follows a definition of the whole schema', () => {
  const definitions = { $defs: { day: { type: 'integer', minimum: 1 } } }
  const schema = { type: 'array', items: { $ref: '#/$defs/day' } }

  expect(acceptsValue(schema, '[1]', definitions)).toBe(true)
  expect(acceptsValue(schema, '[0]', definitions)).toBe(false)
})

test('a tool without declared parameters accepts any', () => {
  const call = '<call>f<p=a>1</p>\n<p=b>two</p></call>'

  expect(accepts([{ name: 'f' }], call)).toBe(true)
  expect(accepts([{ name: 'f', parameters: { type: 'object' } }], '<call>f</call>')).toBe(true)
  expect(accepts([{ name: 'f', parameters: { type: 'object', properties: {} } }], call)).toBe(false)
})

test('text and JSON can have different tags', () => {
  const parameters = {
    ...format.parameters,
    open: '<p=',
    keyEnds: [' text>', ' json>'],
    valueEnd: '</p>',
  } as const
  const tool = {
    name: 'f',
    parameters: {
      type: 'object',
      properties: { a: { type: 'string' }, b: { type: 'integer' }, c: { type: ['string', 'integer'] } },
    },
  }
  const matches = (text: string): boolean => accepts([tool], `<call>f${text}</call>`, { parameters })

  expect(matches('<p=a text>1</p><p=b json>1</p><p=c text>1</p>')).toBe(true)
  expect(matches('<p=c json>1</p>')).toBe(true)
  expect(matches('<p=a json>1</p>')).toBe(false)
  expect(matches('<p=b text>1</p>')).toBe(false)
})

test('a schema that contradicts itself is rejected with its field', () => {
  const parameters = {
    type: 'object',
    properties: { a: { type: 'integer', minimum: 2, maximum: 1 } },
    required: ['a'],
  }

  expect(() => accepts([{ name: 'f', parameters, field: 'tools[0].parameters' }], '')).toThrow(
    expect.objectContaining({ code: 'invalid_request' }),
  )
})

const whole: ToolCallFormat = { call: ['{"name": "', '", "parameters": ', '}'], isWholeOutput: true }
const clock: CallableTool = {
  name: 'clock',
  parameters: { type: 'object', properties: { zone: { enum: ['UTC'] } }, required: ['zone'] },
}
const clock2: CallableTool = {
  name: 'clock2',
  parameters: { type: 'object', properties: {}, additionalProperties: false },
}

test.each([
  [true, ''],
  [true, 'Hello {"name": "clock", "parameters": {}}'],
  [true, '{"name": "Bob", "age": 7}'],
  [true, '{"nam'],
  [true, '{"name": "clock", "parameters": {"zone":"UTC"}}'],
  [true, '{"name": "clock", "parameters": {"zone":"UTC"}}; {"name":"clock2","parameters":{}}'],
  [true, '{"name": "clock2", "parameters": {}}'],
  [false, '{"name": "clock", "parameters": {}}'],
  [false, '{"name": "clock", "parameters": {"zone":"CET"}}'],
  [false, '{"name": "clock2", "parameters": {"zone":"UTC"}}'],
  [false, '{"name": "clock, the one on the wall"}'],
])('without a mark, an output that starts as a call is one: %j for %j', (expected, text) => {
  const grammar = buildOutputGrammar({
    calls: { tools: [clock, clock2], format: whole, isRequired: false, isParallel: true },
  })

  expect(new GbnfMatcher(grammar ?? '').matches(text)).toBe(expected)
})

test('without parallel calls, one call is the whole output', () => {
  const grammar = buildOutputGrammar({
    calls: { tools: [clock2], format: whole, isRequired: false, isParallel: false },
  })
  const call = '{"name": "clock2", "parameters": {}}'

  expect(new GbnfMatcher(grammar ?? '').matches(call)).toBe(true)
  expect(new GbnfMatcher(grammar ?? '').matches(`${call}; ${call}`)).toBe(false)
})
