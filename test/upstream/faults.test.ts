/** Upstream servers that fail in any way: each failure is a typed error, and none reveals what the server says. */
import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Engine, GenerateEvent, GenerateRequest } from '@modelmount/core/engine'
import { upstreamEngine } from '@modelmount/core/upstream'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { collect } from '../../packages/core/src/engine/events.ts'
import { until } from '../support/processes.ts'
import { deepText } from '../support/run-log.ts'
import { chatDelta, sendEvents, sendJson, UpstreamServer } from '../support/upstream-server.ts'

let server: UpstreamServer
let engine: Engine
beforeEach(async () => {
  server = await UpstreamServer.start()
  engine = upstreamEngine({ url: server.url, server: 'vllm', stallTimeoutMs: 1_000 })
})
afterEach(async () => {
  await engine.close()
  await server.close()
})

const request: GenerateRequest = {
  model: 'small',
  input: { kind: 'chat', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }] },
}
const ask = (signal = new AbortController().signal): AsyncIterable<GenerateEvent> =>
  engine.generate(request, { signal })
const answer = () => collect(ask())
const secret = 'the secret of the server'
const finish = (response: ServerResponse): void =>
  void sendEvents(response, chatDelta({}, 'stop'), 'data: [DONE]\n\n').end()
const code = (name: string) => expect.objectContaining({ code: name })

test('an answer without counts is estimated, and marked so', async () => {
  server.answer = (response) => {
    sendEvents(response, chatDelta({ content: 'Good' }), chatDelta({ content: ' day' }))
    finish(response)
  }

  const { text, usage } = await answer()

  expect(text).toBe('Good day')
  expect(usage).toMatchObject({ inputTokens: 6, outputTokens: 2, isEstimated: true })
})

test.each<[what: string, status: number, expected: object]>([
  ['401', 401, { code: 'upstream', details: { setup: true } }],
  ['403', 403, { code: 'upstream', details: { setup: true } }],
  ['404', 404, { code: 'not_found', details: { model: 'small' } }],
  ['400', 400, { code: 'invalid_request' }],
  ['422', 422, { code: 'invalid_request' }],
  ['413', 413, { code: 'too_large' }],
  ['500', 500, { code: 'upstream' }],
  ['501', 501, { code: 'invalid_request' }],
  ['503', 503, { code: 'overloaded' }],
])(
  'a response with status %s is a typed error without the words of the server',
  async (_what, status, expected) => {
    server.answer = (response) => sendJson(response, { error: { message: secret } }, status)

    const error = await answer().catch((cause: unknown) => cause)

    expect(error).toMatchObject(expected)
    expect(deepText(error)).not.toContain(secret)
    expect(String((error as Error).cause)).toContain(String(status))
  },
)

test.each([
  ['seconds', '7', 7_000],
  ['no header', undefined, undefined],
  ['nonsense', 'soon', undefined],
])('a server with too many requests is overloaded: retry-after %s', async (_what, header, retryAfterMs) => {
  server.answer = (response) => {
    if (header) response.setHeader('retry-after', header)
    sendJson(response, {}, 429)
  }

  const error = await answer().catch((cause: unknown) => cause)

  expect(error).toMatchObject({ code: 'overloaded' })
  expect(error).toHaveProperty(
    'details',
    retryAfterMs === undefined
      ? expect.not.objectContaining({ retryAfterMs: expect.anything() })
      : { retryAfterMs },
  )
})

test.each([
  [
    'vLLM',
    "This model's maximum context length is 100 tokens. However, your request has 200 input tokens. resulted in 200",
  ],
  ['llama-server', { error: { type: 'exceed_context_size_error', n_prompt_tokens: 200, n_ctx: 100 } }],
  ['Anthropic', 'prompt is too long: 200 tokens > 100 maximum'],
])('a prompt that is too long says how long both are, as %s says it', async (_server, body) => {
  server.answer = (response) =>
    sendJson(response, typeof body === 'string' ? { error: { message: body } } : body, 400)

  await expect(answer()).rejects.toMatchObject({
    code: 'context_length',
    details: { inputTokens: 200, contextSize: 100 },
  })
})

test('a redirect is not followed', async () => {
  const other = await UpstreamServer.start()
  server.answer = (response) =>
    response.writeHead(307, { location: `${other.url}/v1/chat/completions` }).end()

  await expect(answer()).rejects.toMatchObject({ code: 'upstream', details: { setup: true } })
  expect(other.requests).toEqual([])
  await other.close()
})

test('a stream that is cut off is an error, after what has arrived', async () => {
  server.answer = (response) => {
    sendEvents(response, chatDelta({ content: 'Good' }))
    setImmediate(() => response.destroy())
  }
  const texts: string[] = []
  const read = async () => {
    for await (const event of ask()) if (event.type === 'text') texts.push(event.text)
  }

  await expect(read()).rejects.toEqual(code('upstream'))
  expect(texts.join('')).toMatch(/^(Good)?$/)
})

test('a stream that ends without a finish reason is an error', async () => {
  server.answer = (response) => sendEvents(response, chatDelta({ content: 'Good' })).end()

  await expect(answer()).rejects.toMatchObject({
    code: 'upstream',
    message: 'The upstream server sent an invalid response: it ended before the answer was complete.',
  })
})

test('a server that stalls is an error', async () => {
  server.answer = (response) => void sendEvents(response, chatDelta({ content: 'Good' }))

  await expect(answer()).rejects.toMatchObject({
    code: 'upstream',
    message: 'The upstream server does not answer.',
  })
})

test('a character that arrives in two halves stays whole', async () => {
  server.answer = (response) => {
    const bytes = Buffer.from(`data: ${JSON.stringify(chatDelta({ content: 'Käse 🧀' }))}\n\n`)
    const middle = bytes.indexOf(0xf0) + 2
    sendEvents(response).write(bytes.subarray(0, middle), () => {
      response.write(bytes.subarray(middle))
      finish(response)
    })
  }

  expect((await answer()).text).toBe('Käse 🧀')
})

test.each([
  ['invalid JSON', 'data: {"choices": [\n\n'],
  ['a text instead of an object', 'data: "hello"\n\n'],
])('%s in an event is an error', async (_what, event) => {
  server.answer = (response) => sendEvents(response, event).end()

  await expect(answer()).rejects.toEqual(code('upstream'))
})

test('an event of 10 MB is an error', async () => {
  server.answer = (response) =>
    sendEvents(response, chatDelta({ content: 'x'.repeat(10 * 1024 * 1024) }), chatDelta({}, 'stop')).end()

  await expect(answer()).rejects.toMatchObject({
    code: 'upstream',
    message: 'The upstream server sent an invalid response: one event is too long.',
  })
})

test('an error within the stream is an error without the words of the server', async () => {
  server.answer = (response) =>
    sendEvents(response, chatDelta({ content: 'Good' }), { error: { message: secret, code: 500 } }).end()

  const error = await answer().catch((cause: unknown) => cause)

  expect(error).toEqual(code('upstream'))
  expect(deepText(error)).not.toContain(secret)
})

test('an error in the same chunk as a part of the answer comes after this part', async () => {
  server.answer = (response) => {
    response.cork()
    sendEvents(response, chatDelta({ content: 'Good' }), { error: { message: secret, code: 500 } }).end()
  }
  let text = ''
  const read = async () => {
    for await (const event of ask()) if (event.type === 'text') text += event.text
  }

  await expect(read()).rejects.toEqual(code('upstream'))
  expect(text).toBe('Good')
})

test('a response of status 200 with an error instead of a stream is an error', async () => {
  server.answer = (response) => sendJson(response, { error: { message: secret, code: 429 } })

  await expect(answer()).rejects.toEqual(code('overloaded'))
})

test('counts that cannot be right are estimated', async () => {
  server.answer = (response) => {
    sendEvents(response, chatDelta({ content: 'Good' }), chatDelta({}, 'stop'))
    const usage = { prompt_tokens: -1, completion_tokens: 1e300 }
    sendEvents(response, { choices: [], usage }, 'data: [DONE]\n\n').end()
  }

  expect((await answer()).usage).toMatchObject({ inputTokens: 6, outputTokens: 1, isEstimated: true })
})

test('a server that closes each connection after a stream without saying so loses no request', async () => {
  server.answer = (response) => {
    response.setHeader('connection', 'keep-alive')
    sendEvents(response, chatDelta({ content: 'Good' }))
    finish(response)
    response.socket?.destroySoon()
  }

  for (let count = 0; count < 50; count++) expect((await answer()).text).toBe('Good')
})

test('a server that cannot be reached is an error', async () => {
  await server.close()

  await expect(answer()).rejects.toMatchObject({
    code: 'upstream',
    message: 'The upstream server cannot be reached.',
  })
  server = await UpstreamServer.start()
})

test('a caller who leaves closes the connection', async () => {
  let isClosed = false
  server.answer = (response) => {
    response.on('close', () => {
      isClosed = true
    })
    sendEvents(response, chatDelta({ content: 'Good' }))
  }
  const leaving = new AbortController()
  const events = ask(leaving.signal)[Symbol.asyncIterator]()
  await events.next()

  leaving.abort()

  for (let event = await events.next(); !event.done; event = await events.next());
  await until(() => isClosed, 5_000)
})

test('the key of the app is sent, and is not in the request of the caller', async () => {
  await engine.close()
  engine = upstreamEngine({
    ...{ url: `${server.url}/openai/v1/`, server: 'other', apiKey: async () => 'sk-own' },
    headers: { 'x-team': 'blue' },
  })
  server.answer = finish

  await answer()

  const [received] = server.requests
  expect(received?.path).toBe('/openai/v1/chat/completions')
  expect(received?.headers).toMatchObject({ authorization: 'Bearer sk-own', 'x-team': 'blue' })
})

test('tenants get different salts of the cache of vLLM', async () => {
  server.answer = finish
  const saltOf = async (tenant: string) => {
    await collect(engine.generate(request, { signal: new AbortController().signal, tenant }))
    const body = server.requests.at(-1)?.body as { readonly cache_salt?: string } | undefined
    return body?.cache_salt
  }

  const [ann, bob] = [await saltOf('ann'), await saltOf('bob')]

  // A hash, because the server is not told the names of tenants.
  expect(ann).toBe(createHash('sha256').update('ann').digest('base64url'))
  expect(ann).not.toBe(bob)
  expect(await saltOf('ann')).toBe(ann)
})

test('a server without a field rejects callers who need it, instead of ignoring the field', async () => {
  await engine.close()
  engine = upstreamEngine({ url: server.url, server: 'other' })

  const topK = engine.generate(
    { ...request, sampling: { topK: 5 } },
    { signal: new AbortController().signal },
  )
  const regex = engine.generate(
    { ...request, format: { type: 'regex', pattern: 'a' } },
    { signal: new AbortController().signal },
  )

  await expect(collect(topK)).rejects.toMatchObject({
    code: 'invalid_request',
    details: { param: 'sampling.topK', issue: 'unsupported' },
  })
  await expect(collect(regex)).rejects.toMatchObject({
    code: 'invalid_request',
    details: { param: 'format' },
  })
  expect(server.requests).toEqual([])
})
