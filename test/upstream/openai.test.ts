/** An app whose models run in another app with Modelmount, over OpenAI's API. */
import type { Llm } from '@modelmount/core'
import type { GenerateRequest } from '@modelmount/core/engine'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { collect } from '../../packages/core/src/engine/events.ts'
import { until } from '../support/processes.ts'
import { startUpstreamApps, type UpstreamApps } from '../support/upstream-apps.ts'

let apps: UpstreamApps
/** The app that clients call, and the one that has the model. */
let llm: Llm
let replica: Llm
let client: OpenAI

beforeAll(async () => {
  apps = await startUpstreamApps('openai')
  ;({ llm, replica } = apps)
  client = new OpenAI({ baseURL: `${apps.url}/v1`, apiKey: 'none', maxRetries: 0 })
})
afterAll(() => apps.close())

const question = 'What is a GGUF file?'
const greedy = { temperature: 0, maxTokens: 40 } as const

test('an answer and its usage are those of the other app', async () => {
  const direct = await replica.chat(question, greedy)

  const answer = await llm.chat(question, { ...greedy, model: 'tiny:latest' })

  expect(answer.text).toBe(direct.text)
  expect(answer.finishReason).toBe('stop')
  expect(answer.usage.inputTokens).toBe(direct.usage.inputTokens)
  expect(answer.usage.outputTokens).toBe(direct.usage.outputTokens)
  expect(answer.usage).not.toHaveProperty('isEstimated')
})

test('the OpenAI package streams a chat, and reads its usage', async () => {
  const direct = await replica.chat(question, greedy)
  const stream = await client.chat.completions.create({
    ...{ model: 'tiny:latest', messages: [{ role: 'user', content: question }] },
    ...{ temperature: 0, max_tokens: 40, stream: true, stream_options: { include_usage: true } },
  })

  let text = ''
  let usage: OpenAI.CompletionUsage | null | undefined
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? ''
    usage = chunk.usage ?? usage
  }

  expect(text).toBe(direct.text)
  expect(usage).toMatchObject({
    prompt_tokens: direct.usage.inputTokens,
    completion_tokens: direct.usage.outputTokens,
  })
})

test('a text without a template continues as in the other app', async () => {
  const request: GenerateRequest = {
    model: 'tiny:latest',
    input: { kind: 'text', prompt: ['GGUF is'], template: false },
    ...{ maxTokens: 12, sampling: { temperature: 0 } },
  }
  const read = async (app: Llm): Promise<string> => (await collect(await app.generate(request))).text

  expect(await read(llm)).toBe(await read(replica))
})

test('the tokens of a chat are counted as its answer counts them', async () => {
  const input = { kind: 'chat', messages: [userMessage(question)] } as const
  const { usage } = await llm.chat(question, { ...greedy, model: 'tiny:latest' })

  expect(await llm.countTokens({ model: 'tiny:latest', input })).toBe(usage.inputTokens)
})

test('log probabilities are those of the other app', async () => {
  const ask = (app: Llm) =>
    app.generate({
      model: 'tiny:latest',
      input: { kind: 'chat', messages: [userMessage(question)] },
      ...{ maxTokens: 5, sampling: { temperature: 0 }, logprobs: 2, reasoning: 'auto' },
    })
  const [direct, answer] = [await collect(await ask(replica)), await collect(await ask(llm))]

  expect(answer.logprobs?.map(({ text, top }) => [text, top.map((one) => one.text)])).toEqual(
    direct.logprobs?.map(({ text, top }) => [text, top.map((one) => one.text)]),
  )
})

const userMessage = (text: string) => ({ role: 'user', content: [{ type: 'text', text }] }) as const
const weather = {
  ...{ name: 'get_weather', description: 'Returns the weather of a city.' },
  parameters: {
    ...{ type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    additionalProperties: false,
  },
} as const

test('the model calls a tool, and gets its result', async () => {
  const tools = [{ type: 'function', function: weather }] as const
  const messages: OpenAI.ChatCompletionMessageParam[] = [
    { role: 'user', content: 'What is the weather in Paris?' },
  ]
  const ask = (tool_choice: 'required' | 'auto') =>
    client.chat.completions.create({
      ...{ model: 'tiny:latest', messages, tools: [...tools], tool_choice, max_tokens: 60, temperature: 0 },
    })
  const first = await ask('required')
  const [choice] = first.choices
  const [call] = choice?.message.tool_calls ?? []

  expect(choice?.finish_reason).toBe('tool_calls')
  expect(call).toMatchObject({ type: 'function', function: { name: 'get_weather' } })
  expect(
    JSON.parse((call as OpenAI.ChatCompletionMessageFunctionToolCall).function.arguments),
  ).toHaveProperty('city')

  messages.push(choice?.message as OpenAI.ChatCompletionMessageParam)
  messages.push({ role: 'tool', tool_call_id: call?.id ?? '', content: '{"weather":"sunny"}' })
  const second = await ask('auto')
  expect(second.choices[0]?.message.content).not.toBe('')
  expect(second.usage?.prompt_tokens).toBeGreaterThan(first.usage?.prompt_tokens ?? 0)
})

test('an answer matches the JSON Schema of the request', async () => {
  const answer = await client.chat.completions.create({
    ...{ model: 'tiny:latest', messages: [{ role: 'user', content: 'A city and its country.' }] },
    max_tokens: 100,
    response_format: {
      type: 'json_schema',
      json_schema: {
        name: 'city',
        schema: {
          ...{ type: 'object', required: ['city', 'big'], additionalProperties: false },
          properties: { city: { type: 'string', maxLength: 10 }, big: { type: 'boolean' } },
        },
      },
    },
  })

  expect(JSON.parse(answer.choices[0]?.message.content ?? '')).toEqual({
    city: expect.any(String),
    big: expect.any(Boolean),
  })
})

test('an answer matches a regular expression', async () => {
  const stream = await llm.generate({
    model: 'tiny:latest',
    input: { kind: 'chat', messages: [userMessage('A number.')] },
    format: { type: 'regex', pattern: '[0-9]{3}' },
    maxTokens: 20,
  })

  expect((await collect(stream)).text).toMatch(/^[0-9]{3}$/)
})

test('a client that leaves ends the call in the other app', async () => {
  const leaving = new AbortController()
  const stream = llm.chat('Tell me a long story.', {
    ...{ model: 'tiny:latest', stream: true, ignoreEos: true, signal: leaving.signal },
  })
  const events = stream[Symbol.asyncIterator]()
  await events.next()
  const running = () => replica.loaded()[0]?.activity?.activeSequences ?? 0
  await until(() => running() === 1, 10_000)

  leaving.abort()

  await expect(events.next()).resolves.toMatchObject({ done: true })
  await until(() => running() === 0, 10_000)
})

describe('errors', () => {
  test('an unknown model is not found', async () => {
    await expect(llm.chat(question, { model: 'nope' })).rejects.toMatchObject({
      code: 'not_found',
      details: { model: 'nope' },
    })
  })

  test('a prompt that is longer than the context says how long both are', async () => {
    const ask = llm.chat('word '.repeat(20_000), { model: 'tiny:latest' })

    await expect(ask).rejects.toMatchObject({
      code: 'context_length',
      details: { inputTokens: expect.any(Number), contextSize: expect.any(Number) },
    })
  })
})

test('the list of models has the models of the other app', async () => {
  const { data } = await client.models.list()

  expect(data.map(({ id }) => id)).toContain('tiny:latest')
})
