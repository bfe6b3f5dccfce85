/** The plugin beside routes, hooks, parsers and error handlers of the app. */
import { gzipSync } from 'node:zlib'
import { createLlm, LlmError } from '@modelmount/core'
import { readEvents, scriptedEngine } from '@modelmount/core/testing'
import fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import { describe, expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../../test/support/empty-folder.ts'
import { adminPlugin, type LlmPluginOptions, llmPlugin } from './index.ts'

const models = emptyFolder()
const engine = scriptedEngine('Hello there.')
const llm = await createLlm({ engine, models })
const chat = '/v1/chat/completions'
const hello = { model: 'tiny', messages: [{ role: 'user', content: 'Hello' }] }
const soon = { interval: 2, timeout: 2_000 }

/** Creates an app with a route of its own, and lets `prepare` add more before the routes of Modelmount. */
function appOf(
  options: Partial<LlmPluginOptions> & { readonly prefix?: string } = {},
  prepare: (app: FastifyInstance) => void = () => {},
  server: FastifyServerOptions = {},
): FastifyInstance {
  const app: FastifyInstance = fastify({ forceCloseConnections: true, ...server })
  onTestFinished(() => app.close())
  prepare(app)
  app.post('/users', async (request) => ({ created: request.body }))
  app.register(llmPlugin, { llm, ...options })
  return app
}

describe('paths', () => {
  test('at the root, our routes answer, and so do the routes and the 404 of the app', async () => {
    const app = appOf({}, (app) => app.setNotFoundHandler((_request, reply) => reply.code(404).send('mine')))

    const ours = await app.inject({ method: 'POST', url: chat, payload: hello })
    const theirs = await app.inject({ method: 'POST', url: '/users', payload: { name: 'Ada' } })
    const unknown = await app.inject('/v1/nope')
    const method = await app.inject({ method: 'DELETE', url: chat })

    expect(ours.json().choices[0].message.content).toBe('Hello there.')
    expect(theirs.json()).toEqual({ created: { name: 'Ada' } })
    expect([unknown.statusCode, unknown.body]).toEqual([404, 'mine'])
    expect([method.statusCode, method.body]).toEqual([404, 'mine'])
  })

  test('under a prefix, errors name the path below it, and the rest of the app keeps its 404', async () => {
    const app = appOf({ prefix: '/llm' })

    const ours = await app.inject({ method: 'POST', url: `/llm${chat}`, payload: hello })
    const model = await app.inject('/llm/v1/models/a/b')
    const unknown = await app.inject('/llm/v1/nope?x=/1')
    const method = await app.inject({ method: 'DELETE', url: `/llm${chat}` })
    const outside = await app.inject('/nope')

    expect(ours.json().choices[0].message.content).toBe('Hello there.')
    expect(model.json().error.message).toBe('model "a/b" not found')
    expect([unknown.statusCode, unknown.json().error.message]).toEqual([404, 'Invalid URL (GET /v1/nope)'])
    expect([method.statusCode, method.headers.allow]).toEqual([405, 'POST'])
    expect(outside.json().message).toBe('Route GET:/nope not found')
  })

  test('a prefix may have parameters, and be made of several', async () => {
    const app: FastifyInstance = fastify()
    onTestFinished(() => app.close())
    app.register(async (team) => void team.register(llmPlugin, { llm, prefix: '/ai' }), { prefix: '/:team' })

    const model = await app.inject('/blue/ai/v1/models/tiny')
    const unknown = await app.inject('/blue/ai/v1/nope')

    expect(model.json().id).toBe('tiny')
    expect(unknown.json().error.message).toBe('Invalid URL (GET /v1/nope)')
  })

  test.each(['/llm', '/llm/'])('the mount point %s answers with the greeting of Ollama', async (url) => {
    const response = await appOf({ prefix: '/llm' }).inject(url)

    expect(response.body).toBe('Ollama is running')
  })

  test('HEAD is answered like GET, also if the app exposes no HEAD routes', async () => {
    const app = appOf({ prefix: '/llm' }, () => {}, { exposeHeadRoutes: false })

    const models = await app.inject({ method: 'HEAD', url: '/llm/v1/models' })
    const post = await app.inject({ method: 'HEAD', url: `/llm${chat}` })

    expect([models.statusCode, models.body]).toEqual([200, ''])
    expect(post.statusCode).toBe(405)
  })

  test('an empty parameter is an unknown path', async () => {
    const responses = await Promise.all(
      ['/v1/models/', '/v1/files/'].map((path) => appOf({ prefix: '/llm' }).inject(`/llm${path}`)),
    )

    expect(responses.map(({ statusCode }) => statusCode)).toEqual([404, 404])
    expect(responses[0]?.json().error.message).toBe('Invalid URL (GET /v1/models/)')
  })

  test('two plugins share nothing', async () => {
    const german = await createLlm({ engine: scriptedEngine('Guten Tag.'), models })
    const app = appOf({ prefix: '/en' }, (app) => {
      app.register(llmPlugin, { llm: german, prefix: '/de' })
    })

    const answers = await Promise.all(
      ['/en', '/de'].map((prefix) => app.inject({ method: 'POST', url: prefix + chat, payload: hello })),
    )

    expect(answers.map((answer) => answer.json().choices[0].message.content)).toEqual([
      'Hello there.',
      'Guten Tag.',
    ])
  })
})

test.each([
  [{ dialects: ['latin'] }, 'Expected a dialect'],
  [{ bodyLimit: 'much' }, 'much'],
  [{ limit: 1 }, 'Unknown option `limit`'],
  [{ llm: createLlm({ engine, models }) }, 'write `await createLlm()`'],
  [{ authenticate: () => undefined }, 'would never be called'],
])('an invalid option stops the start of the app: %j', async (options, message) => {
  const app = appOf(options as never)

  await expect(app.ready()).rejects.toThrow(message)
})

test('the admin API needs a database', async () => {
  const app: FastifyInstance = fastify()
  app.register(adminPlugin, { llm, prefix: '/admin' })

  await expect(app.ready()).rejects.toThrow('expected the option `database` of createLlm()')
})

describe('bodies', () => {
  const large = JSON.stringify({ ...hello, user: 'x'.repeat(2 * 1024 ** 2) })
  const json = { 'content-type': 'application/json' }

  test('the bodyLimit and the parsers of the app apply to its own routes only', async () => {
    const app = appOf({}, (app) => {
      app.removeAllContentTypeParsers()
      app.addContentTypeParser('application/json', { parseAs: 'string' }, async () => 'parsed by the app')
    })

    const ours = await app.inject({ method: 'POST', url: chat, headers: json, payload: large })
    const theirs = await app.inject({ method: 'POST', url: '/users', headers: json, payload: '{}' })
    const tooLarge = await app.inject({ method: 'POST', url: '/users', headers: json, payload: large })

    expect(ours.statusCode).toBe(200)
    expect(theirs.json()).toEqual({ created: 'parsed by the app' })
    expect(tooLarge.statusCode).toBe(413)
  })

  test.each([
    'application/x-www-form-urlencoded',
    'text/plain',
    'multipart/form-data',
    'nonsense',
    undefined,
  ])('JSON is accepted with the content-type %s', async (type) => {
    const headers = type === undefined ? {} : { 'content-type': type }

    const response = await appOf().inject({
      method: 'POST',
      url: chat,
      headers,
      payload: JSON.stringify(hello),
    })

    expect(response.json().choices[0].message.content).toBe('Hello there.')
  })

  test('a body over bodyLimit and broken JSON get the errors of their API', async () => {
    const app = appOf({ bodyLimit: '1kb' })

    const tooLarge = await app.inject({ method: 'POST', url: chat, headers: json, payload: large })
    const broken = await app.inject({ method: 'POST', url: chat, headers: json, payload: '{"model":' })

    expect([tooLarge.statusCode, tooLarge.json().error.code]).toEqual([413, 'request_too_large'])
    expect([broken.statusCode, broken.json().error.message]).toEqual([
      400,
      'The request body is not valid JSON.',
    ])
  })

  test('a compressed body is rejected with the name of its encoding', async () => {
    const response = await appOf().inject({
      method: 'POST',
      url: chat,
      headers: { ...json, 'content-encoding': 'gzip' },
      payload: gzipSync(JSON.stringify(hello)),
    })

    expect([response.statusCode, response.json().error.message]).toEqual([
      400,
      'A request body in content-encoding gzip is not supported.',
    ])
  })
})

describe('hooks of the app', () => {
  test('run for our routes, see the answer, and may add headers', async () => {
    const seen: unknown[] = []
    const app = appOf({ prefix: '/llm' }, (app) => {
      app.addHook('preHandler', async (_request, reply) => void reply.header('x-early', 'yes'))
      app.addHook('onSend', async (request, reply, payload) => {
        seen.push([request.routeOptions.url, reply.statusCode, typeof payload])
        reply.header('x-late', 'yes')
      })
    })

    const responses = [
      await app.inject({ method: 'POST', url: `/llm${chat}`, payload: hello }),
      await app.inject({ method: 'POST', url: `/llm${chat}`, payload: { ...hello, stream: true } }),
      await app.inject({ method: 'POST', url: `/llm${chat}`, payload: {} }),
      await app.inject({ method: 'DELETE', url: `/llm${chat}` }),
      await app.inject('/llm/nope'),
    ]

    expect(seen).toEqual([
      [`/llm${chat}`, 200, 'string'],
      [`/llm${chat}`, 200, 'object'],
      [`/llm${chat}`, 400, 'string'],
      [undefined, 405, 'string'],
      [undefined, 404, 'string'],
    ])
    for (const { headers } of responses) expect(headers).toMatchObject({ 'x-early': 'yes', 'x-late': 'yes' })
  })

  test('authenticate the caller, which `authenticate` returns', async () => {
    const hosted = await createLlm({ engine, models, auth: 'host' })
    const app = appOf(
      {
        llm: hosted,
        authenticate: (request) => (request.user === undefined ? undefined : { id: request.user }),
      },
      (app) => {
        app.addHook('onRequest', async (request, reply) => {
          const { authorization } = request.headers
          if (authorization === 'Bearer wrong') return reply.code(403).send({ refused: 'by the app' })
          if (authorization === 'Bearer ada') request.user = 'ada'
          return undefined
        })
      },
    )
    const call = (authorization: string) =>
      app.inject({ method: 'POST', url: chat, headers: { authorization }, payload: hello })

    const [ada, nobody, wrong] = [await call('Bearer ada'), await call(''), await call('Bearer wrong')]

    expect([ada.statusCode, nobody.statusCode, wrong.statusCode]).toEqual([200, 401, 403])
    expect(nobody.json().error.code).toBe('invalid_api_key')
    expect(wrong.json()).toEqual({ refused: 'by the app' })
  })

  test('an error of `authenticate` goes to the error handler of the app', async () => {
    const hosted = await createLlm({ engine, models, auth: 'host' })
    const app = appOf(
      {
        llm: hosted,
        authenticate: () => {
          throw new Error('The session store is down.')
        },
      },
      (app) => app.setErrorHandler((error: Error, _request, reply) => reply.code(502).send(error.message)),
    )

    const response = await app.inject({ method: 'POST', url: chat, payload: hello })

    expect([response.statusCode, response.body]).toEqual([502, 'The session store is down.'])
  })
})

test('an LlmError of a route of the app is answered with its status, message and retry-after', async () => {
  const app = appOf({}, (app) => {
    app.get('/story', () => Promise.reject(new LlmError('overloaded', 'Full.', { retryAfterMs: 1_500 })))
  })

  const response = await app.inject('/story')

  expect(response.json()).toMatchObject({ statusCode: 503, message: 'Full.' })
  expect(response.headers['retry-after']).toBe('2')
})

describe('streams', () => {
  const long = scriptedEngine('word '.repeat(2_000), { delayMs: 5 })

  test('arrive piece by piece, and end when the client disconnects', async () => {
    const app = appOf({ llm: await createLlm({ engine: long, models }) })
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    const controller = new AbortController()

    const response = await fetch(url + chat, {
      method: 'POST',
      body: JSON.stringify({ ...hello, stream: true }),
      signal: controller.signal,
    })
    const contents: string[] = []
    for await (const { data } of readEvents(response.body as ReadableStream<Uint8Array>)) {
      contents.push(JSON.parse(data).choices[0].delta.content)
      expect(long.running).toBe(1)
      if (contents.length === 3) break
    }
    controller.abort()

    expect(contents).toEqual(['', 'word', ' word'])
    await expect.poll(() => long.running, soon).toBe(0)
  })

  test('are closed when a hook sends another body', async () => {
    const before = long.requests.length
    const app = appOf({ llm: await createLlm({ engine: long, models }) }, (app) => {
      app.addHook('onSend', async () => 'no')
    })

    const response = await app.inject({ method: 'POST', url: chat, payload: { ...hello, stream: true } })

    expect(response.body).toBe('no')
    expect(long.requests).toHaveLength(before + 1)
    await expect.poll(() => long.running, soon).toBe(0)
  })

  test('are closed when a hook has already answered', async () => {
    const before = long.requests.length
    const app = appOf({ llm: await createLlm({ engine: long, models }) }, (app) => {
      app.addHook('preHandler', async (_request, reply) => {
        setImmediate(() => reply.send('too slow'))
      })
    })

    const response = await app.inject({ method: 'POST', url: chat, payload: { ...hello, stream: true } })

    expect(response.body).toBe('too slow')
    expect(long.requests.length - before).toBeLessThanOrEqual(1)
    await expect.poll(() => long.running, soon).toBe(0)
  })
})

declare module 'fastify' {
  interface FastifyRequest {
    user?: string
  }
}
