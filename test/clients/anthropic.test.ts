/** Anthropic's own client with the built-in model. */
import Anthropic from '@anthropic-ai/sdk'
import { createLlm } from '@modelmount/core'
import { llmRouter } from '@modelmount/express'
import express from 'express'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { emptyFolder } from '../support/empty-folder.ts'
import { listen } from '../support/listen.ts'

const arrived: string[] = []
const llm = await createLlm({ models: emptyFolder(), local: { contextSize: 4096 } })
const app = express()
  .use((req, _res, next) => {
    arrived.push(`${req.method} ${req.path}`)
    next()
  })
  .use('/llm', llmRouter(llm))
  .use(llmRouter(llm))
const server = await listen(app)
const client = new Anthropic({ baseURL: server.url, apiKey: 'anything' })
const hello = { role: 'user' as const, content: 'Hello' }
const story = { role: 'user' as const, content: 'Tell me a story.' }
/** The types of the newest client lack `temperature`, but the client sends it. */
const likeliest = { temperature: 0 } as object
const greeting = { model: 'tiny', max_tokens: 50, messages: [hello], ...likeliest }
const tooLong = { ...greeting, messages: [{ role: 'user' as const, content: 'fox '.repeat(5_000) }] }

// Loading the model can take long on a busy machine.
beforeAll(() => llm.chat('Hello', { maxTokens: 1 }), 60_000)

beforeEach(() => {
  arrived.length = 0
})

afterAll(async () => {
  await server.close()
  await llm.close()
})

test('a message has the content, the stop reason and a request id', async () => {
  const message = await client.messages.create(greeting)

  expect(message).toMatchObject({
    type: 'message',
    role: 'assistant',
    model: 'tiny',
    content: [{ type: 'text', text: 'Hello! How can I help you?' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
  })
  expect(message._request_id).toMatch(/^req_.+/)
})

test('the base URL may have a prefix, and may end with a slash', async () => {
  for (const path of ['/', '/llm', '/llm/']) {
    const other = new Anthropic({ baseURL: server.url + path, apiKey: null, authToken: 'anything' })

    const message = await other.messages.create({ ...greeting, max_tokens: 1 })

    expect(message.stop_reason).toBe('max_tokens')
    expect(message.usage.output_tokens).toBe(1)
  }
})

test('the stream helper joins a stream to the same message as without streaming', async () => {
  const question = { ...greeting, messages: [story], max_tokens: 100 }
  const types: string[] = []
  const pieces: string[] = []

  const { id: _, ...whole } = await client.messages.create(question)
  const stream = client.messages
    .stream(question)
    .on('streamEvent', ({ type }) => types.push(type))
    .on('text', (text) => pieces.push(text))
  const { id: __, ...streamed } = await stream.finalMessage()

  expect(streamed).toMatchObject(whole)
  expect(streamed.stop_reason).toBe('max_tokens')
  expect(pieces.length).toBeGreaterThan(10)
  expect(whole.content).toEqual([{ type: 'text', text: pieces.join('') }])
  expect([...new Set(types)]).toEqual([
    'message_start',
    'content_block_start',
    'content_block_delta',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ])
})

test('a stop sequence ends the answer, is not part of it, and is named in the response', async () => {
  const question = { ...greeting, stop_sequences: ['help'] }

  const whole = await client.messages.create(question)
  const streamed = await client.messages.stream(question).finalMessage()

  for (const message of [whole, streamed]) {
    expect(message.content).toMatchObject([{ text: 'Hello! How can I ' }])
    expect(message).toMatchObject({ stop_reason: 'stop_sequence', stop_sequence: 'help' })
  }
})

test('a trailing assistant message is continued', async () => {
  const begun = { role: 'assistant' as const, content: 'Hello! How can ' }

  const message = await client.messages.create({ ...greeting, messages: [hello, begun] })

  expect(message.content).toMatchObject([{ text: expect.stringMatching(/^ ?I help you\?$/) }])
})

test('an aborted stream does not delay the next call', async () => {
  const stream = await client.messages.create({
    ...greeting,
    messages: [story],
    max_tokens: 4_000,
    stream: true,
  })
  const types: string[] = []
  for await (const { type } of stream) {
    types.push(type)
    if (types.length === 4) stream.controller.abort()
  }

  const next = await client.messages.create(greeting)

  expect(types.slice(0, 3)).toEqual(['message_start', 'content_block_start', 'content_block_delta'])
  expect(types).not.toContain('message_stop')
  expect(next.content).toMatchObject([{ text: 'Hello! How can I help you?' }])
})

test('an unknown model makes the client throw a NotFoundError without a retry', async () => {
  const error = await failure(client.messages.create({ ...greeting, model: 'nope' }))

  expect(error).toBeInstanceOf(Anthropic.NotFoundError)
  expect(error).toMatchObject({ status: 404, type: 'not_found_error' })
  expect(error.message).toContain('model: nope')
  expect(error.requestID).toMatch(/^req_.+/)
  expect(arrived).toEqual(['POST /v1/messages'])
})

test('an invalid request makes the client throw a BadRequestError that names the field, without a retry', async () => {
  const error = await failure(client.messages.create({ ...greeting, temperature: 3 } as typeof greeting))

  expect(error).toBeInstanceOf(Anthropic.BadRequestError)
  expect(error.message).toContain('temperature: Input should be less than or equal to 1')
  expect(arrived).toEqual(['POST /v1/messages'])
})

test('a prompt longer than the context makes the client throw a BadRequestError', async () => {
  const whole = await failure(client.messages.create(tooLong))
  const streamed = await failure(client.messages.create({ ...tooLong, stream: true }))

  for (const error of [whole, streamed]) {
    expect(error).toBeInstanceOf(Anthropic.BadRequestError)
    expect(error.message).toMatch(/prompt is too long: \d+ tokens > 4096 maximum/)
  }
  expect(arrived).toHaveLength(2)
})

test.each<[string, Pick<Anthropic.MessageCountTokensParams, 'messages' | 'system'>]>([
  ['one message', { messages: [hello] }],
  ['a system prompt', { system: 'You are a fox.', messages: [hello] }],
  [
    'a conversation in blocks',
    {
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'Tell me a story.' }] },
        { role: 'assistant', content: 'Once upon a time' },
      ],
    },
  ],
  ['two messages of the same role', { messages: [hello, story] }],
])('countTokens() returns the input tokens of the same call: %s', async (_what, prompt) => {
  const { input_tokens } = await client.messages.countTokens({ model: 'tiny', ...prompt })
  const { usage } = await client.messages.create({ model: 'tiny', max_tokens: 1, ...prompt })

  expect(input_tokens).toBeGreaterThan(1)
  expect(input_tokens).toBe(usage.input_tokens)
})

test('countTokens() counts a prompt longer than the context', async () => {
  const { input_tokens } = await client.messages.countTokens({ model: 'tiny', messages: tooLong.messages })
  const error = await failure(client.messages.create(tooLong))

  expect(error.message).toContain(`${input_tokens} tokens > 4096`)
})

test('countTokens() throws a NotFoundError for an unknown model', async () => {
  const error = await failure(client.messages.countTokens({ model: 'nope', messages: [hello] }))

  expect(error).toBeInstanceOf(Anthropic.NotFoundError)
})

test('models can be listed and retrieved', async () => {
  const listed: Anthropic.ModelInfo[] = []
  for await (const model of client.models.list({ limit: 1 })) listed.push(model)
  const tiny = await client.models.retrieve('tiny')
  const unknown = await failure(client.models.retrieve('org/x:Q4'))

  // A dated id of this version may be listed, too.
  const found = listed.find(({ id }) => id === 'tiny:latest')
  expect(found).toMatchObject({ type: 'model', display_name: 'tiny' })
  expect(tiny).toEqual(found)
  expect(unknown).toBeInstanceOf(Anthropic.NotFoundError)
  expect(unknown.message).toContain('model: org/x:Q4')
})

/** Resolves with the error of a call, which must be an `APIError`. */
async function failure(call: Promise<unknown>): Promise<InstanceType<typeof Anthropic.APIError>> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(Anthropic.APIError)
  return error as InstanceType<typeof Anthropic.APIError>
}
