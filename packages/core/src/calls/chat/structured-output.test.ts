import { type } from 'arktype'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { z } from 'zod'
import * as mini from 'zod/mini'
import * as z3 from 'zod/v3'
import { createLlm } from '../../create-llm.ts'
import { type Script, type ScriptedEngineOptions, scriptedEngine } from '../../testing/scripted-engine.ts'
import { jsonSchema, type OutputSchema } from './output-schema.ts'

async function openLlm(script: Script, options?: ScriptedEngineOptions) {
  const engine = scriptedEngine(script, options)
  return { engine, llm: await createLlm({ engine, models: [] }) }
}

const rome = '{"name":"Rome","people":3}'
const properties = { name: { type: 'string' }, people: { type: 'number' } }

test.each<[string, OutputSchema]>([
  ['zod', z.object({ name: z.string(), people: z.number() })],
  ['zod/mini', mini.object({ name: mini.string(), people: mini.number() })],
  ['valibot', v.object({ name: v.string(), people: v.number() })],
  ['arktype', type({ name: 'string', people: 'number' })],
  ['a JSON Schema', { type: 'object', properties, required: ['name', 'people'] }],
  ['jsonSchema()', jsonSchema({ type: 'object', properties, required: ['name', 'people'] })],
])('a schema of %s constrains the answer, and types the object', async (_library, schema) => {
  const { engine, llm } = await openLlm(rome)

  const { object, text } = await llm.chat('Rome?', { schema })

  expect(object).toEqual({ name: 'Rome', people: 3 })
  expect(text).toBe(rome)
  expect(engine.requests[0]?.format).toMatchObject({
    type: 'json-schema',
    schema: { type: 'object', properties, required: ['name', 'people'] },
  })
})

test('the model generates what the schema accepts, and transforms, defaults and async checks apply to it', async () => {
  const { engine, llm } = await openLlm('{"at":"2024-01-31"}')
  const schema = z.object({
    at: z.iso.date().transform((text) => new Date(text).getUTCFullYear()),
    kind: z.enum(['a', 'b']).default('a'),
    name: z
      .string()
      .optional()
      .refine(async (name) => name === undefined),
  })

  const { object } = await llm.chat('When?', { schema })

  expect(object).toEqual({ at: 2024, kind: 'a' })
  expect(engine.requests[0]?.format).toMatchObject({ schema: { required: ['at'] } })
})

test('checks of arktype that JSON Schema lacks apply to the answer', async () => {
  const { engine, llm } = await openLlm('{"n":4,"at":"2024-01-31"}')
  const schema = type({ n: type('number').narrow((n) => n % 2 === 0), at: 'string.date.parse' })

  const { object } = await llm.chat('Hi', { schema })

  expect(object).toEqual({ n: 4, at: new Date('2024-01-31') })
  expect(engine.requests[0]?.format).toMatchObject({
    schema: { properties: { n: { type: 'number' }, at: { type: 'string' } } },
  })
})

test('formats that only zod knows become their patterns', async () => {
  const { engine, llm } = await openLlm('{"a":"x","format":"y"}')
  const schema = z.object({ a: z.string().startsWith('x'), format: z.enum(['y']), id: z.uuid().optional() })

  await llm.chat('Hi', { schema })

  const { format } = engine.requests[0] ?? {}
  expect(format?.type === 'json-schema' && format.schema).toMatchObject({
    properties: {
      a: { type: 'string', pattern: '^x.*' },
      format: { enum: ['y'] },
      id: { pattern: expect.any(String) },
    },
  })
  expect(JSON.stringify(format)).not.toContain('starts_with')
})

test('`true` accepts any JSON', async () => {
  const { engine, llm } = await openLlm('[1]')

  const { object } = await llm.chat('Hi', { schema: true })

  expect(object).toEqual([1])
  expect(engine.requests[0]?.format).toEqual({ type: 'json-schema', schema: true })
})

test('an answer that the schema rejects is an error with the text and what is wrong', async () => {
  const { llm } = await openLlm('{"cities":[{"name":""}]}')
  const schema = z.object({ cities: z.array(z.object({ name: z.string().min(1, 'is empty') })) })

  const answer = llm.chat('Hi', { schema })

  await expect(answer).rejects.toMatchObject({
    name: 'LlmError',
    code: 'invalid_output',
    message: 'The schema rejects the answer: cities[0].name: is empty',
    details: {
      text: '{"cities":[{"name":""}]}',
      schemaIssues: [{ path: 'cities[0].name', message: 'is empty' }],
    },
  })
})

test.each([
  [
    'the limit of tokens',
    { maxTokens: 2 },
    '{"a": "b c d"}',
    '{"a": "b',
    /^The answer is not complete JSON: .*maxTokens/,
  ],
  ['a limit in a number', { maxTokens: 1 }, '12 34', '12', /maxTokens/],
  ['nothing', {}, 'Hello!', 'Hello!', /the model ended it early/],
])(
  'an answer that is cut off by %s is an error with its text',
  async (_what, options, script, text, message) => {
    const { llm } = await openLlm(script)

    const answer = llm.chat('Hi', { schema: true, ...options })

    await expect(answer).rejects.toMatchObject({ code: 'invalid_output', details: { text } })
    await expect(answer).rejects.toThrow(message)
  },
)

test('a stream yields partial objects, and its result has the validated one', async () => {
  const { llm } = await openLlm(['{"name"', ':"Ro', 'me","people":', '3', '}'])
  const schema = z.object({ name: z.string().toUpperCase(), people: z.number() })

  const stream = llm.chat('Rome?', { schema, stream: true })
  const pieces: unknown[] = []
  for await (const piece of stream) pieces.push(piece)

  expect(pieces).toEqual([
    { text: '{"name"', object: {} },
    { text: ':"Ro', object: { name: 'Ro' } },
    { text: 'me","people":', object: { name: 'Rome' } },
    { text: '3', object: { name: 'Rome' } },
    { text: '}', object: { name: 'Rome', people: 3 } },
  ])
  expect((await stream.result).object).toEqual({ name: 'ROME', people: 3 })
})

test('a stream whose answer the schema rejects ends with the error', async () => {
  const { llm } = await openLlm(['{', '}'])
  const schema = z.object({}).refine(() => false, 'never')

  const stream = llm.chat('Hi', { schema, stream: true })
  const texts: string[] = []
  const reading = (async () => {
    for await (const { text } of stream) texts.push(text)
  })()

  await expect(reading).rejects.toMatchObject({ code: 'invalid_output' })
  expect(texts).toEqual(['{', '}'])
})

test.each<[string, unknown, RegExp]>([
  [
    'a text',
    'json',
    /^schema: expected a schema of zod, valibot or arktype, or a JSON Schema, got 'json'\.$/,
  ],
  ['a list', [], /^schema: expected .*, got a list\.$/],
  ['null', null, /^schema: expected .*, got null\.$/],
  ['fields', { name: z.string() }, /^schema: .*Did you mean z\.object\(/],
  ['zod 3', z3.z.object({}), /^schema: zod offers no JSON Schema for this schema\. Use zod 4/],
  ['a date of arktype', type({ at: 'Date' }), /^schema: the arktype schema has no JSON Schema\. .*'date'/],
  ['a date', z.object({ at: z.date() }), /^schema: the zod schema has no JSON Schema\. Date cannot/],
])('%s is no schema', async (_what, schema, message) => {
  const { engine, llm } = await openLlm('')

  const answer = llm.chat('Hi', { schema: schema as never })

  await expect(answer).rejects.toMatchObject({ code: 'invalid_request', details: { param: 'schema' } })
  await expect(answer).rejects.toThrow(message)
  expect(engine.requests).toEqual([])
})
