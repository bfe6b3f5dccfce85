/** OpenAI's own client with a scripted engine: tool calls, JSON, logprobs, reasoning, text and embeddings. */
import { createLlm } from '@modelmount/core'
import { type GenerateRequest, toTemplateMessages } from '@modelmount/core/engine'
import { type ScriptedAnswer, scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import OpenAI from 'openai'
import { LengthFinishReasonError } from 'openai/error'
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'

/** Next answer of the engine. */
let say: (request: GenerateRequest) => ScriptedAnswer
const engine = scriptedEngine((request) => say(request))
const llm = await createLlm({ engine, models: emptyFolder() })
const server = await listen(express().use(llmRouter(llm)))
const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'anything', maxRetries: 0 })
const question = { model: 'tiny', messages: [{ role: 'user' as const, content: 'Is it raining in Paris?' }] }
const City = z.object({ city: z.string() })

/** Makes two tool calls, and then an answer from their results. */
const askFirst = ({ input }: GenerateRequest): ScriptedAnswer => {
  const results = toTemplateMessages(input).flatMap(({ content }) =>
    content.flatMap((part) => (part.type === 'tool-result' ? part.content : [])),
  )
  if (results.length > 0) return results.map((part) => ('text' in part ? `${part.text} ` : ''))
  return [
    { call: 'weather', id: 'call_a', arguments: ['{"ci', 'ty":"Par', 'is"}'] },
    { call: 'time', id: 'call_b' },
  ]
}

beforeEach(() => {
  say = () => 'Hello there.'
})

afterAll(async () => {
  await server.close()
  await llm.close()
})

const tools = [
  zodFunction({ name: 'weather', parameters: City, function: ({ city }) => `rain in ${city}` }),
  zodFunction({ name: 'time', parameters: z.object({}), function: () => 'noon' }),
]

test('runTools calls the functions and gets the answer without streaming', async () => {
  say = askFirst

  const runner = client.chat.completions.runTools({ ...question, tools })

  expect(await runner.finalContent()).toBe('rain in Paris noon ')
  expect(runner.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool', 'assistant'])
})

test('runTools calls the functions and gets the answer with streaming', async () => {
  say = askFirst

  const runner = client.chat.completions.runTools({ ...question, tools, stream: true })
  const pieces: string[] = []
  runner.on('content', (piece) => pieces.push(piece))

  expect(await runner.finalContent()).toBe('rain in Paris noon ')
  expect(pieces).toEqual(['rain in Paris ', 'noon '])
  expect(runner.messages).toHaveLength(5)
})

test('the stream helper joins tool calls and parses the arguments of strict tools', async () => {
  say = askFirst
  const deltas: string[] = []

  const stream = client.chat.completions.stream({ ...question, tools })
  stream.on('tool_calls.function.arguments.delta', ({ index, arguments_delta }) =>
    deltas.push(`${index} ${arguments_delta}`),
  )
  const { choices } = await stream.finalChatCompletion()

  expect(choices[0]?.finish_reason).toBe('tool_calls')
  expect(choices[0]?.message.tool_calls).toMatchObject([
    { id: 'call_a', type: 'function', function: { name: 'weather', parsed_arguments: { city: 'Paris' } } },
    { id: 'call_b', type: 'function', function: { name: 'time', arguments: '{}', parsed_arguments: {} } },
  ])
  expect(deltas).toEqual(expect.arrayContaining(['0 {"ci', '0 ty":"Par', '0 is"}', '1 {}']))
})

test('an incomplete tool call makes the stream helper throw a LengthFinishReasonError', async () => {
  say = () => [{ call: 'weather', arguments: ['{"city":'] }]

  const stream = client.chat.completions.stream({ ...question, tools })

  await expect(stream.finalChatCompletion()).rejects.toBeInstanceOf(LengthFinishReasonError)
})

test('parse() returns the object of a response format, and the schema reaches the engine', async () => {
  say = () => '{"city":"Paris"}'

  const { choices } = await client.chat.completions.parse({
    ...question,
    response_format: zodResponseFormat(City, 'place'),
  })

  expect(choices[0]?.message.parsed).toEqual({ city: 'Paris' })
  expect(engine.requests.at(-1)?.format).toMatchObject({
    type: 'json-schema',
    schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  })
})

test('JSON that is cut by the token limit makes parse() throw a LengthFinishReasonError', async () => {
  say = () => ['{"city":', '"Paris"}']

  const parsing = client.chat.completions.parse({
    ...question,
    max_tokens: 1,
    response_format: zodResponseFormat(City, 'place'),
  })

  await expect(parsing).rejects.toBeInstanceOf(LengthFinishReasonError)
})

test('the stream helper joins logprobs, and the deltas contain the reasoning', async () => {
  const token = (text: string) => ({ id: 1, text, bytes: [...Buffer.from(text)], logprob: -0.5 })
  const drawn = (text: string) => ({ text, logprobs: [{ ...token(text), top: [token(text)] }] })
  say = () => [{ reasoning: 'Hm' }, { reasoning: '.' }, drawn('Hel'), drawn('lo')]
  const thoughts: string[] = []

  const stream = client.chat.completions.stream({ ...question, logprobs: true, top_logprobs: 1 })
  stream.on('chunk', ({ choices }) => {
    const delta = choices[0]?.delta as { reasoning_content?: string } | undefined
    thoughts.push(delta?.reasoning_content ?? '')
  })
  const { choices } = await stream.finalChatCompletion()

  expect(choices[0]?.message.content).toBe('Hello')
  expect(choices[0]?.logprobs?.content?.map(({ token }) => token)).toEqual(['Hel', 'lo'])
  expect(thoughts.join('')).toBe('Hm.')
})

test('embeddings are the same in base64, the default of the client, and as floats', async () => {
  const inputs = { model: 'tiny', input: ['fox', 'dog'] }

  const packed = await client.embeddings.create(inputs)
  const floats = await client.embeddings.create({ ...inputs, encoding_format: 'float' })
  const short = await client.embeddings.create({ ...inputs, dimensions: 3 })

  for (const [index, { embedding }] of packed.data.entries()) {
    expect(embedding).toHaveLength(8)
    for (const [at, value] of embedding.entries())
      expect(value).toBeCloseTo(floats.data[index]?.embedding[at] as number, 6)
  }
  expect(short.data.map(({ embedding }) => embedding.length)).toEqual([3, 3])
  expect(packed.usage).toEqual({ prompt_tokens: 6, total_tokens: 6 })
})

test('text completions work with and without streaming', async () => {
  say = () => ' upon a time'

  const whole = await client.completions.create({ model: 'tiny', prompt: 'Once', echo: true })
  const stream = await client.completions.create({ model: 'tiny', prompt: ['Once', 'Twice'], stream: true })
  const texts = ['', '']
  for await (const { choices } of stream) for (const { index, text } of choices) texts[index] += text

  expect(whole.choices[0]?.text).toBe('Once upon a time')
  expect(texts).toEqual([' upon a time', ' upon a time'])
})

test('an invalid tool makes the client throw a BadRequestError that names the field', async () => {
  for (const stream of [false, true]) {
    const call = client.chat.completions.create({
      ...question,
      tools: [{ type: 'function', function: { name: '' } }],
      stream,
    })

    await expect(call).rejects.toMatchObject({ status: 400, param: 'tools[0].function.name' })
  }
})
