/** Tests the interceptors in the APIs of OpenAI, Anthropic and Ollama, with a script and with the built-in model. */
import { once } from 'node:events'
import { createLlm, LlmError } from '@modelmount/core'
import { readEvents, scriptedEngine } from '@modelmount/core/testing'
import request from 'supertest'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createApp, createInterceptors } from './app.js'

async function start(options) {
  const rows = []
  const interceptors = createInterceptors(async (row) => void rows.push(row))
  const llm = await createLlm({ interceptors, ...options })
  onTestFinished(() => llm.close())
  return { app: createApp(llm), rows }
}

const messages = [{ role: 'user', content: 'Who are you?' }]

const apis = {
  openai: {
    path: '/llm/v1/chat/completions',
    body: { model: 'tiny', messages },
    textOf: ({ choices }) => choices[0]?.message.content ?? '',
    pieceOf: ({ choices }) => choices[0]?.delta.content,
  },
  anthropic: {
    path: '/llm/v1/messages',
    body: { model: 'tiny', messages, max_tokens: 99 },
    textOf: ({ content }) => content[0]?.text ?? '',
    pieceOf: ({ delta }) => delta?.text,
  },
  ollama: {
    path: '/llm/api/chat',
    body: { model: 'tiny', messages },
    textOf: ({ message }) => message.content,
    pieceOf: ({ message }) => message.content,
  },
}

const parseStream = async (text) => {
  if (text.startsWith('{'))
    return text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
  const events = []
  for await (const { data } of readEvents(text)) if (data !== '[DONE]') events.push(JSON.parse(data))
  return events
}

describe.each(Object.entries(apis))('through the API of %s', (api, { path, body, textOf, pieceOf }) => {
  const pieces = ['I am ', 'ada', '.l@', 'exam', 'ple', '.com', ', and ', 'bob@x.', 'org']

  test('addresses in an answer are replaced, and a row has its usage', async () => {
    const { app, rows } = await start({ engine: scriptedEngine(pieces) })

    const response = await request(app)
      .post(path)
      .send({ ...body, stream: false })
      .expect(200)

    expect(textOf(response.body)).toBe('I am [e-mail], and [e-mail]')
    expect(rows).toEqual([
      {
        id: expect.any(String),
        time: expect.any(String),
        caller: 'anonymous',
        api,
        kind: 'generate',
        model: 'tiny:latest',
        status: 'ended',
        error: null,
        finishReason: 'stop',
        inputTokens: 1,
        outputTokens: 9,
        durationMs: expect.any(Number),
      },
    ])
  })

  test('addresses in a stream are replaced, and no piece contains a part of one', async () => {
    const { app } = await start({ engine: scriptedEngine(pieces) })

    const response = await request(app)
      .post(path)
      .send({ ...body, stream: true })
      .buffer(true)
      .expect(200)

    const texts = (await parseStream(response.text)).map((data) => pieceOf(data)).filter(Boolean)
    expect(texts).toEqual(['I am ', '[e-mail], and ', '[e-mail]'])
  })

  test('a failed answer has a row with its error', async () => {
    const { app, rows } = await start({ engine: scriptedEngine(new LlmError('upstream', 'It broke.')) })

    await request(app)
      .post(path)
      .send({ ...body, stream: false })
      .expect(500)

    expect(rows).toMatchObject([{ api, status: 'failed', error: 'upstream', outputTokens: 0 }])
  })
})

describe.each(Object.values(apis))('$path', ({ path, body }) => {
  test.each([true, false])('responds with 403 to a refused call (stream: %s)', async (stream) => {
    const engine = scriptedEngine('Hello.')
    const { app } = await start({
      engine,
      interceptors: [
        {
          before: async ({ kind }) => {
            if (kind === 'generate') throw new LlmError('permission', 'Not on Sundays.')
            return undefined
          },
        },
      ],
    })

    const { text } = await request(app)
      .post(path)
      .send({ ...body, stream })
      .expect(403)

    expect(text).toContain('Not on Sundays.')
    expect(engine.requests).toEqual([])
  })

  test('responds with 500 if an interceptor fails, and logs why, once', async () => {
    const logged = []
    const { app } = await start({
      engine: scriptedEngine('Hello.'),
      interceptors: [{ name: 'search', before: () => Promise.reject(new Error('The index is gone.')) }],
      logger: { warn: () => {}, error: (details) => void logged.push(details) },
    })

    const { text } = await request(app)
      .post(path)
      .send({ ...body, stream: true })
      .expect(500)

    expect(text).not.toContain('index')
    expect(logged.map((details) => String(details.err.cause))).toEqual([
      'Error: `interceptors[0].before` ("search") failed: The index is gone.',
    ])
  })
})

test('addresses in the arguments of a tool are replaced, and the arguments stay JSON', async () => {
  const engine = scriptedEngine([{ call: 'mail', arguments: ['{"text":"Hi', '\\nada@', 'example.com"}'] }])
  const { app } = await start({ engine })

  const { body } = await request(app)
    .post('/llm/v1/messages')
    .send({
      ...apis.anthropic?.body,
      tools: [{ name: 'mail', input_schema: { type: 'object', properties: { text: { type: 'string' } } } }],
    })
    .expect(200)

  expect(body.content).toMatchObject([{ type: 'tool_use', input: { text: 'Hi\n[e-mail]' } }])
})

test('a run of letters that is longer than an address is not withheld', async () => {
  const { app } = await start({ engine: scriptedEngine(Array(40).fill('abcdefgh')) })

  const response = await request(app)
    .post('/llm/api/chat')
    .send({ model: 'tiny', messages })
    .buffer(true)
    .expect(200)

  const texts = (await parseStream(response.text)).map((data) => apis.ollama?.pieceOf(data))
  expect(texts.map((text) => text?.length)).toEqual([256, 64, 0])
})

describe('documents that belong to the question', () => {
  const systemOf = ({ input }) =>
    input.kind === 'chat' &&
    input.messages.filter(({ role }) => role === 'system').map(({ content }) => content)
  const added = 'Answer with the help of these documents:\n\nA parcel to Norway takes five days.'

  test('become a system message, or a part of it, and count as input', async () => {
    const engine = scriptedEngine('Five days.')
    const { app } = await start({ engine })
    const question = { role: 'user', content: 'How long does a parcel take?' }
    const send = (messages) =>
      request(app).post('/llm/v1/chat/completions').send({ model: 'tiny', messages }).expect(200)

    const { body } = await send([question])
    await send([{ role: 'system', content: 'Be kind.' }, question])
    await send([{ role: 'user', content: 'Hi' }])
    const { body: count } = await request(app)
      .post('/llm/v1/messages/count_tokens')
      .send({ model: 'tiny', messages: [question] })
      .expect(200)

    expect(engine.requests.map(systemOf)).toEqual([
      [[{ type: 'text', text: added }]],
      [
        [
          { type: 'text', text: 'Be kind.' },
          { type: 'text', text: '\n\n' },
          { type: 'text', text: added },
        ],
      ],
      [],
    ])
    // The scripted engine counts each message as a token.
    expect(body.usage.prompt_tokens).toBe(2)
    expect(count.input_tokens).toBe(2)
  })
})

test('the built-in model answers, and an address that a schema forces it to write is replaced', async () => {
  const { app, rows } = await start({})
  const schema = {
    type: 'object',
    properties: { mail: { const: 'ada@example.com' } },
    required: ['mail'],
    additionalProperties: false,
  }

  const plain = await request(app)
    .post('/llm/v1/chat/completions')
    .send({ model: 'tiny', messages: [{ role: 'user', content: 'Hi' }], temperature: 0 })
    .expect(200)
  const forced = await request(app)
    .post('/llm/v1/chat/completions')
    .send({
      model: 'tiny',
      messages,
      response_format: { type: 'json_schema', json_schema: { name: 'mail', schema } },
    })
    .expect(200)

  expect(plain.body.choices[0].message.content).toBe('Hello! How can I help you?')
  expect(JSON.parse(forced.body.choices[0].message.content)).toEqual({ mail: '[e-mail]' })
  expect(rows.map(({ status, inputTokens, outputTokens }) => [status, inputTokens, outputTokens])).toEqual(
    [plain, forced].map(({ body: { usage } }) => ['ended', usage.prompt_tokens, usage.completion_tokens]),
  )
  expect(forced.body.usage.completion_tokens).toBeGreaterThan(5)
})

test('the model stops when a client disconnects, and the row says so', async () => {
  const engine = scriptedEngine('word '.repeat(10_000), { delayMs: 2 })
  const { app, rows } = await start({ engine })
  const server = app.listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const client = new AbortController()
  const answer = fetch(`http://127.0.0.1:${server.address().port}/llm/api/chat`, {
    method: 'POST',
    body: JSON.stringify({ model: 'tiny', stream: false, messages }),
    signal: client.signal,
  })
  await expect.poll(() => engine.running).toBe(1)

  client.abort()

  await expect(answer).rejects.toThrow('aborted')
  await expect.poll(() => rows.map(({ status }) => status)).toEqual(['aborted'])
  expect(engine.running).toBe(0)
})
