/** OpenAI's own client with the built-in model: tool calls, structured output and prompt logprobs. */
import { createLlm } from '@modelmount/core'
import { llmRouter } from '@modelmount/express'
import { Ajv } from 'ajv'
import express from 'express'
import OpenAI from 'openai'
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'

const llm = await createLlm({ models: emptyFolder(), local: { contextSize: 4096 } })
const server = await listen(express().use(llmRouter(llm)))
const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'anything', maxRetries: 0 })

beforeAll(() => llm.chat('Hello', { maxTokens: 1 }), 60_000)

afterAll(async () => {
  await server.close()
  await llm.close()
})

const ask = (content: string) => ({
  model: 'tiny',
  temperature: 0,
  max_tokens: 200,
  messages: [{ role: 'user' as const, content }],
})
const Weather = z.object({ city: z.string().max(20), unit: z.enum(['celsius', 'fahrenheit']) })
const weather = zodFunction({ name: 'get_weather', parameters: Weather, description: 'Tells the weather.' })
const roll = {
  type: 'function' as const,
  function: { name: 'roll_dice', parameters: { type: 'object', properties: { sides: { enum: [6, 20] } } } },
}

test.each([
  ['required', 'required' as const, /^(get_weather|roll_dice)$/],
  ['named', { type: 'function' as const, function: { name: 'roll_dice' } }, /^roll_dice$/],
])('a tool call that is %s is made, with and without streaming', async (_, tool_choice, name) => {
  const question = { ...ask('Hello'), tools: [weather, roll], tool_choice, parallel_tool_calls: false }

  const whole = (await client.chat.completions.create(question)).choices[0]
  const streamed = (await client.chat.completions.stream(question).finalChatCompletion()).choices[0]

  const ids = [whole, streamed].map((choice) => choice?.message.tool_calls?.[0]?.id)
  expect(new Set(ids).size).toBe(2)
  for (const choice of [whole, streamed]) {
    expect(choice?.finish_reason).toBe('tool_calls')
    expect(choice?.message.tool_calls).toHaveLength(1)
    const [call] = choice?.message.tool_calls ?? []
    const { function: called } = call as OpenAI.ChatCompletionMessageFunctionToolCall
    expect(called.name).toMatch(name)
    expect(JSON.parse(called.arguments)).toBeTypeOf('object')
  }
})

test.each([false, true])(
  'the model calls a tool and uses its result in the answer (stream: %s)',
  async (stream) => {
    const calls: unknown[] = []
    const tool = zodFunction({
      name: 'get_weather',
      description: 'Get the current weather in a city.',
      parameters: z.object({ city: z.string() }),
      function: (given) => {
        calls.push(given)
        return JSON.stringify({ temperature: 21, sky: 'sunny' })
      },
    })
    const body = { ...ask('What is the weather in Paris?'), tools: [tool] }

    const runner = stream
      ? client.chat.completions.runTools({ ...body, stream })
      : client.chat.completions.runTools(body)

    const content = await runner.finalContent()
    expect(calls).toEqual([{ city: 'Paris' }])
    expect(content).toMatch(/21/)
  },
)

test('a response format constrains the output', async () => {
  const Place = z.object({
    name: z.string().max(10),
    kind: z.enum(['city', 'river']),
    size: z.number().int().min(0).max(9),
  })

  for (const temperature of [0, 1]) {
    const { choices } = await client.chat.completions.parse({
      ...ask('Tell me of a place.'),
      temperature,
      response_format: zodResponseFormat(Place, 'place'),
    })
    expect(Place.safeParse(choices[0]?.message.parsed).success).toBe(true)
  }
})

test('a response format may be recursive, and have alternatives and null', async () => {
  const node = {
    type: 'object',
    properties: {
      size: { anyOf: [{ const: 1 }, { const: 2 }] },
      note: { type: ['boolean', 'null'] },
      inner: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] },
    },
    required: ['size', 'note', 'inner'],
    additionalProperties: false,
  }
  const schema = { $ref: '#/$defs/node', $defs: { node } }
  const isNode = new Ajv({ allowUnionTypes: true }).compile(schema)

  const trees: unknown[] = []
  for (const seed of [1, 2, 3, 4, 5, 6]) {
    const { choices } = await client.chat.completions.create({
      ...{ ...ask('Draw a tree.'), temperature: 2, max_tokens: 300, seed },
      ...({ top_k: 0, min_p: 0 } as object),
      response_format: { type: 'json_schema', json_schema: { name: 'tree', schema } },
    })
    const [choice] = choices
    if (choice?.finish_reason === 'stop') trees.push(JSON.parse(choice.message.content ?? ''))
  }
  expect(trees.length).toBeGreaterThan(1)
  expect(trees.every((tree) => isNode(tree))).toBe(true)
})

test('`echo` with `logprobs` scores a prompt, as evaluation harnesses need it', async () => {
  const [context, continuation] = ['Hello! How can', ' I help you?']
  const score = async (prompt: string | number[] | string[], more = {}) => {
    const body = { model: 'tiny', prompt, echo: true, logprobs: 5, temperature: 0, ...more }
    return (await client.completions.create({ ...body, max_tokens: 0 })).choices
  }
  const prompt = context + continuation
  const ids = await llm.tokenize({ model: 'tiny', text: prompt })
  const before = (await llm.tokenize({ model: 'tiny', text: context })).length

  const [one] = await score(prompt)
  const [same] = await score([...ids])
  const several = await score([prompt, context])
  const [answered] = (
    await client.completions.create({
      ...{ model: 'tiny', prompt, echo: true, logprobs: 0, max_tokens: 3 },
      ...({ ignore_eos: true } as object),
    })
  ).choices

  const { tokens, token_logprobs, top_logprobs, text_offset } = (one?.logprobs ?? {}) as Required<
    NonNullable<OpenAI.CompletionChoice['logprobs']>
  >
  expect(one).toMatchObject({ text: prompt, finish_reason: 'length' })
  expect([tokens.length, token_logprobs.length, top_logprobs.length]).toEqual(Array(3).fill(ids.length))
  expect(tokens.join('')).toBe(prompt)
  expect(text_offset).toEqual(tokens.map((_, index) => tokens.slice(0, index).join('').length))
  expect([token_logprobs[0], top_logprobs[0]]).toEqual([null, null])
  // The continuation is from the training data of the model, so most of its tokens are the most likely ones.
  const likely = token_logprobs.slice(before).map((logprob, index) => {
    return logprob === Math.max(...Object.values(top_logprobs[before + index] ?? {}))
  })
  expect(likely.filter(Boolean).length).toBeGreaterThan(likely.length / 2)
  expect(same?.logprobs).toEqual(one?.logprobs)
  expect(several.map(({ text }) => text)).toEqual([prompt, context])
  expect(several[0]?.logprobs).toEqual(one?.logprobs)
  expect(answered?.text.startsWith(prompt)).toBe(true)
  expect(answered?.logprobs?.token_logprobs?.length).toBe(ids.length + 3)
})

test('`echo` with `logprobs` has the same scores in a stream', async () => {
  const body = { model: 'tiny', prompt: 'Hello! How can I help you?', echo: true, logprobs: 2, max_tokens: 2 }
  const seeded = { ...body, seed: 1 }
  const [whole] = (await client.completions.create(seeded)).choices
  const chunks = await client.completions.create({ ...seeded, stream: true })

  let text = ''
  const logprobs: (number | null)[] = []
  const offsets: number[] = []
  for await (const { choices } of chunks) {
    text += choices[0]?.text ?? ''
    logprobs.push(...(choices[0]?.logprobs?.token_logprobs ?? []))
    offsets.push(...(choices[0]?.logprobs?.text_offset ?? []))
  }

  expect(text).toBe(whole?.text)
  expect(logprobs).toEqual(whole?.logprobs?.token_logprobs)
  expect(offsets).toEqual(whole?.logprobs?.text_offset)
})

test('an unsupported schema gets a 400 that names the keyword', async () => {
  const format = (schema: Record<string, unknown>) => ({
    ...{ type: 'json_schema' as const, json_schema: { name: 'a', schema } },
  })
  const negated = format({ type: 'object', properties: { a: { not: { type: 'string' } } } })
  const unknown = format({ type: 'nope' })
  const parameters = { type: 'object', properties: { a: { type: 'nope' } } }

  for (const stream of [false, true])
    for (const [response_format, keyword] of [
      [negated, 'not'],
      [unknown, 'type'],
    ] as const) {
      const call = client.chat.completions.create({ ...ask('Hello'), response_format, stream })
      await expect(call).rejects.toMatchObject({
        status: 400,
        param: expect.stringMatching(new RegExp(`^response_format\\.json_schema\\.schema.*${keyword}$`)),
      })
    }
  const call = client.chat.completions.create({
    ...ask('Hello'),
    tools: [{ type: 'function', function: { name: 'f', parameters } }],
    tool_choice: 'required',
  })
  await expect(call).rejects.toMatchObject({
    status: 400,
    param: expect.stringMatching(/^tools\[0\]\.function\.parameters.*type$/),
  })
})
