/** The router before and behind common Express middleware. */
import { createLlm } from '@modelmount/core'
import { type Engine, uncached } from '@modelmount/core/engine'
import { readEvents, scriptedEngine } from '@modelmount/core/testing'
import compression from 'compression'
import cors from 'cors'
import type { RequestHandler } from 'express'
import helmet from 'helmet'
import request from 'supertest'
import { describe, expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../../test/support/empty-folder.ts'
import { expresses } from '../../../test/support/expresses.ts'
import { listen } from '../../../test/support/listen.ts'

const models = emptyFolder()
const engine = scriptedEngine('Hello there.')
const llm = await createLlm({ engine, models })
const hello = { model: 'tiny', messages: [{ role: 'user', content: 'Hello' }] }
const chat = '/v1/chat/completions'

describe.each(expresses)('Express $version', ({ express, llmRouter }) => {
  const cookies: RequestHandler = (req, res, next) => {
    Object.assign(req, { cookies: { session: req.headers.cookie } })
    res.cookie('session', 'abc')
    next()
  }
  const middlewares: readonly (readonly [name: string, middleware: RequestHandler])[] = [
    ['express.json()', express.json()],
    ["express.json({ limit: '50mb' })", express.json({ limit: '50mb' })],
    ['express.urlencoded({ extended: true })', express.urlencoded({ extended: true })],
    ["express.text({ type: '*/*' })", express.text({ type: '*/*' })],
    ["express.raw({ type: '*/*' })", express.raw({ type: '*/*' })],
    ['compression()', compression()],
    ['cors()', cors()],
    ['helmet()', helmet()],
    ['middleware that sets a cookie', cookies],
  ]
  const mounts = middlewares.flatMap(([name, middleware]) => [
    {
      title: `the router after ${name}`,
      mount: (router: RequestHandler) => express().use(middleware, router),
    },
    {
      title: `the router before ${name}`,
      mount: (router: RequestHandler) => express().use(router, middleware),
    },
  ])

  describe.each(mounts)('$title', ({ mount }) => {
    test('a chat gets a complete answer', async () => {
      const app = mount(llmRouter(llm))

      const response = await request(app).post(chat).send(hello)

      expect(response.status).toBe(200)
      expect(response.body.choices[0].message.content).toBe('Hello there.')
      expect(engine.requests.at(-1)?.input).toMatchObject({
        messages: [{ content: [{ type: 'text', text: 'Hello' }] }],
      })
    })

    test('a streamed chat arrives piece by piece, and uncompressed', async () => {
      const { gated, open } = twoPieces('Hello', ' there.')
      const { url, close } = await listen(mount(llmRouter(await createLlm({ engine: gated, models }))))
      onTestFinished(close)

      const response = await fetch(url + chat, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'accept-encoding': 'gzip' },
        body: JSON.stringify({ ...hello, stream: true }),
      })
      const texts: string[] = []
      for await (const { data } of readEvents(response.body as ReadableStream<Uint8Array>)) {
        const text = data === '[DONE]' ? undefined : JSON.parse(data).choices[0].delta.content
        if (text) texts.push(text)
        // If frames were buffered, the test would never get here.
        if (text === 'Hello') open()
      }

      expect(texts).toEqual(['Hello', ' there.'])
      expect(response.headers.get('content-encoding')).toBeNull()
    })
  })

  test.each([
    ['cors()', cors(), { 'access-control-allow-origin': '*' }],
    [
      'helmet()',
      helmet(),
      { 'x-content-type-options': 'nosniff', 'content-security-policy': expect.any(String) },
    ],
    ['middleware that sets a cookie', cookies, { 'set-cookie': ['session=abc; Path=/'] }],
  ])('headers of %s stay on answers, streams and errors', async (_name, middleware, headers) => {
    const app = express().use(middleware, llmRouter(llm, { unknownRoutes: 'error' }))

    const responses = [
      await request(app).post(chat).send(hello),
      await request(app)
        .post(chat)
        .send({ ...hello, stream: true }),
      await request(app).post(chat).send({}),
      await request(app).delete(chat),
    ]

    expect(responses.map(({ status }) => status)).toEqual([200, 200, 400, 405])
    for (const response of responses) expect(response.headers).toMatchObject(headers)
  })

  test('cors() in front answers a preflight request', async () => {
    const app = express().use(cors(), llmRouter(llm))

    const response = await request(app)
      .options(chat)
      .set({ origin: 'https://example.com', 'access-control-request-method': 'POST' })

    expect(response.status).toBe(204)
    expect(response.headers['access-control-allow-methods']).toContain('POST')
  })

  test('compression() in front compresses a long answer without streaming', async () => {
    const story = 'Once upon a time. '.repeat(100)
    const app = express().use(
      compression(),
      llmRouter(await createLlm({ engine: scriptedEngine(story), models })),
    )

    const response = await request(app).post(chat).set('accept-encoding', 'gzip').send(hello)

    expect(response.headers['content-encoding']).toBe('gzip')
    expect(response.body.choices[0].message.content).toBe(story)
  })

  describe('bodies', () => {
    const form = 'application/x-www-form-urlencoded'
    const misread = (message: string): object => ({
      error: { message, type: 'invalid_request_error', param: null, code: null },
    })
    const readAsForm = misread(
      'An earlier body parser read the request body as a form, because of its content-type. Send application/json. In the app, mount the routes before the body parser. In Nest, set bodyParser to false.',
    )

    test.each([
      ['broken JSON', 400, '{"model":'],
      ['a body over 100 kB', 413, JSON.stringify({ ...hello, user: 'x'.repeat(100 * 1024) })],
    ])('%s is answered by Express, with %i, behind express.json()', async (_what, status, body) => {
      const app = express().use(express.json(), llmRouter(llm))

      const response = await request(app).post(chat).type('json').send(body)

      expect(response.status).toBe(status)
      expect(response.type).toBe('text/html')
      expect(response.headers).not.toHaveProperty('x-request-id')
    })

    test('the router handles broken JSON and a body over 100 kB before express.json()', async () => {
      const app = express().use(llmRouter(llm), express.json())

      const broken = await request(app).post(chat).type('json').send('{"model":')
      const large = await request(app)
        .post(chat)
        .send({ ...hello, user: 'x'.repeat(100 * 1024) })

      expect(broken.status).toBe(400)
      expect(broken.body).toEqual(misread('The request body is not valid JSON.'))
      expect(large.status).toBe(200)
    })

    test("JSON with curl's content-type is accepted without a parser in front", async () => {
      const app = express().use(llmRouter(llm))

      const response = await request(app).post(chat).type(form).send(JSON.stringify(hello))

      expect(response.status).toBe(200)
      expect(response.body.choices[0].message.content).toBe('Hello there.')
    })

    test.each([
      ["express.json({ type: '*/*' })", express.json({ type: '*/*' })],
      ["express.text({ type: '*/*' })", express.text({ type: '*/*' })],
      ["express.raw({ type: '*/*' })", express.raw({ type: '*/*' })],
    ])("JSON with curl's content-type is accepted behind %s", async (_name, parser) => {
      const app = express().use(parser, llmRouter(llm))

      const response = await request(app).post(chat).type(form).send(JSON.stringify(hello))

      expect(response.status).toBe(200)
      expect(response.body.choices[0].message.content).toBe('Hello there.')
    })

    describe.each([true, false])('behind express.urlencoded({ extended: %s })', (extended) => {
      test.each([
        ["JSON with curl's content-type", JSON.stringify(hello)],
        ['JSON that contains form characters', '{"model":"1=2&3","messages":[{"content":"&a[b]=c"}]}'],
        ['JSON that begins with a new line', `\n${JSON.stringify(hello)}`],
        ['a form', 'model=tiny&messages=Hello'],
      ])('%s is rejected with a hint', async (_what, body) => {
        const app = express().use(express.urlencoded({ extended }), llmRouter(llm))

        const response = await request(app).post(chat).type(`${form}; charset=utf-8`).send(body)

        expect(response.status).toBe(400)
        expect(response.body).toEqual(readAsForm)
      })

      test('JSON with its own content-type is answered', async () => {
        const app = express().use(express.urlencoded({ extended }), llmRouter(llm))

        const response = await request(app).post(chat).send(hello)

        expect(response.body.choices[0].message.content).toBe('Hello there.')
      })
    })

    test('a body that earlier middleware consumed is rejected with a hint', async () => {
      const eat: RequestHandler = (req, _res, next) => void req.resume().once('end', () => next())
      const app = express().use(eat, llmRouter(llm))

      const response = await request(app).post(chat).send(hello)

      expect(response.status).toBe(400)
      expect(response.body).toEqual(
        misread(
          'Earlier middleware consumed the request body and did not keep it. In the app, mount the routes before the body parser. In Nest, set bodyParser to false.',
        ),
      )
    })

    test.each([
      ["express.text({ type: '*/*' })", express.text({ type: '*/*' })],
      ["express.raw({ type: '*/*' })", express.raw({ type: '*/*' })],
    ])('a body from %s must be valid JSON of limited depth', async (_name, parser) => {
      const app = express().use(parser, llmRouter(llm))

      const broken = await request(app).post(chat).type('json').send('{"model":')
      const deep = await request(app).post(chat).type('json').send('['.repeat(129))

      expect([broken.status, broken.body]).toEqual([400, misread('The request body is not valid JSON.')])
      expect([deep.status, deep.body]).toEqual([
        400,
        misread('The request body is nested deeper than 128 levels.'),
      ])
    })
  })
})

/** Returns an engine that emits one piece of text, and the second piece after `open()`. */
function twoPieces(first: string, second: string): { gated: Engine; open: () => void } {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  const gated: Engine = {
    ...scriptedEngine(''),
    async *generate({ model }) {
      yield { type: 'start', model, inputTokens: 1, reusedTokens: 0, ...uncached, fingerprint: 'fp_gated' }
      yield { type: 'text', text: first, tokens: 1 }
      await opened
      yield { type: 'text', text: second, tokens: 1 }
      yield {
        type: 'end',
        finishReason: 'stop',
        usage: { inputTokens: 1, reusedTokens: 0, ...uncached, outputTokens: 2 },
        timings: { loadMs: 0, promptMs: 0, generateMs: 0 },
      }
    },
  }
  return { gated, open }
}
