/** `llm.chat()` with schemas, tools and streams, answered by the built-in model. */
import { createLlm, type Llm } from '@modelmount/core'
import { type } from 'arktype'
import * as v from 'valibot'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { emptyFolder } from '../support/empty-folder.ts'

let llm: Llm

beforeAll(async () => {
  llm = await createLlm({ models: emptyFolder(), local: { contextSize: 2_048 } })
})

afterAll(() => llm.close())

const city = z.object({
  name: z.string().min(1).max(20),
  people: z.int().min(0).max(1_000_000),
  tags: z.array(z.enum(['old', 'large', 'warm'])).max(3),
})
const get_weather = {
  description: 'Get the current weather for a city',
  parameters: z.object({ city: z.enum(['Rome', 'Oslo']) }),
  execute: ({ city }: { city: string }) => ({ city, sky: 'sunny', degrees: 21 }),
}
const question = 'What is the weather in Rome?'

test.each([
  ['zod', city],
  [
    'valibot',
    v.object({
      name: v.pipe(v.string(), v.maxLength(20)),
      people: v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(1_000_000)),
      tags: v.pipe(v.array(v.picklist(['old', 'large', 'warm'])), v.maxLength(3)),
    }),
  ],
  [
    'arktype',
    type({
      name: 'string <= 20',
      people: '0 <= number.integer <= 1000000',
      tags: "('old'|'large'|'warm')[] <= 3",
    }),
  ],
])('answers to a schema of %s are always valid', async (_library, schema) => {
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, seed) =>
      llm.chat('Tell me about Rome, as JSON.', { schema, seed, temperature: 1 }),
    ),
  )

  for (const { object } of answers)
    expect(object).toEqual({ name: expect.any(String), people: expect.any(Number), tags: expect.any(Array) })
})

test('partial objects of a stream grow into the object', async () => {
  const stream = llm.chat('Tell me about Rome, as JSON.', { schema: city, stream: true, seed: 3 })

  const pieces: Awaited<ReturnType<typeof stream.next>>['value'][] = []
  for await (const piece of stream) pieces.push(piece)

  const { object, text } = await stream.result
  expect(pieces.map((piece) => piece?.text).join('')).toBe(text)
  expect(pieces.at(-1)?.object).toEqual(object)
  for (const piece of pieces) {
    const { name = '', tags = [] } = piece?.object ?? {}
    expect(object.name.startsWith(name)).toBe(true)
    expect(tags.length).toBeLessThanOrEqual(object.tags.length)
  }
})

test('the model calls a tool and answers, and the second prompt reuses all tokens of the first', async () => {
  const { text, steps } = await llm.chat(question, { tools: { get_weather }, temperature: 0 })

  const [first, second] = steps
  expect(first?.toolCalls).toMatchObject([{ name: 'get_weather', arguments: { city: 'Rome' } }])
  expect(text).toContain('sunny')
  expect(second?.usage.reusedTokens).toBeGreaterThanOrEqual(first?.usage.inputTokens ?? Number.NaN)
})

test('a forced call, and an answer that matches a schema', async () => {
  const { object, steps } = await llm.chat(question, {
    tools: { get_weather },
    toolChoice: { tool: 'get_weather' },
    schema: z.object({ sky: z.enum(['sunny', 'cloudy']) }),
    maxSteps: 2,
  })

  expect(steps.map(({ toolCalls }) => toolCalls.length > 0)).toEqual([true, false])
  expect(object).toEqual({ sky: expect.stringMatching(/^(sunny|cloudy)$/) })
})

test('a cancelled stream stops the model, and the next call is answered', async () => {
  const leaving = new AbortController()
  const schema = { type: 'string', minLength: 1_900 } as const
  const stream = llm.chat('Tell me a story.', { schema, stream: true, signal: leaving.signal })
  let count = 0

  for await (const _piece of stream) if (++count === 5) leaving.abort()

  expect(count).toBe(5)
  await expect(stream.result).rejects.toMatchObject({ name: 'AbortError' })
  expect((await llm.chat('Hello', { temperature: 0 })).text).toBe('Hello! How can I help you?')
})

test('an answer that the limit of tokens cuts off is an error with its text', async () => {
  const answer = llm.chat('Tell me about Rome, as JSON.', { schema: city, maxTokens: 3 })

  await expect(answer).rejects.toMatchObject({
    code: 'invalid_output',
    details: { text: expect.stringMatching(/^\{/) },
  })
})

test('a schema that cannot be enforced is an error that names its option', async () => {
  const schema = z.object({ name: z.string().regex(/^(?!a)b/) })
  const strict = { parameters: schema, strict: true, execute: () => '' }

  await expect(llm.chat('Hi', { schema })).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringMatching(/^schema: .*"pattern" at #\/properties\/name/),
    details: { param: 'schema' },
  })
  await expect(
    llm.chat('Hi', { tools: { get_weather, strict }, toolChoice: { tool: 'strict' } }),
  ).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringMatching(/^tools\.strict\.parameters: .*"pattern"/),
    details: { param: 'tools.strict.parameters' },
  })
})
