import { gzipSync } from 'node:zlib'
import { bodyParser } from '@koa/bodyparser'
import cors from '@koa/cors'
import { type RouterMiddleware as Middleware, Router } from '@koa/router'
import { type Caller, createLlm } from '@modelmount/core'
import { readEvents, scriptedEngine } from '@modelmount/core/testing'
import Koa from 'koa'
import compress from 'koa-compress'
import request from 'supertest'
import { describe, expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../../test/support/empty-folder.ts'
import { listen } from '../../../test/support/listen.ts'
import { llmRouter } from './router.ts'

const models = emptyFolder()
const engine = scriptedEngine('Hello there.')
const llm = await createLlm({ engine, models })
const chat = '/v1/chat/completions'
const hello = { model: 'tiny', messages: [{ role: 'user', content: 'Hello' }] }
const soon = { interval: 2, timeout: 2_000 }

/** Creates an app with these middlewares, in this order. */
function appOf(...middlewares: readonly Middleware[]) {
  const app = new Koa()
  for (const middleware of middlewares) app.use(middleware)
  app.silent = true // Otherwise Koa prints disconnects and errors of middleware.
  return app.callback()
}

const users = new Router().get('/api/users', (ctx) => {
  ctx.body = ['ann']
})

describe('at the root', () => {
  test('our routes answer, and so do the routes of the app behind them', async () => {
    const router = llmRouter(llm)
    const app = appOf(router.routes(), router.allowedMethods(), users.routes())

    const ours = await request(app).post(chat).send(hello)
    const theirs = await request(app).get('/api/users')

    expect(ours.status).toBe(200)
    expect(ours.body.choices[0].message.content).toBe('Hello there.')
    expect(theirs.body).toEqual(['ann'])
    expect(theirs.headers).not.toHaveProperty('x-request-id')
  })

  test('an unknown path falls through to the app, and our router leaves no trace in the context', async () => {
    const app = appOf(llmRouter(llm).routes(), (ctx) => {
      ctx.status = 404
      ctx.body = { params: ctx.params ?? {}, matched: ctx.matched, route: ctx._matchedRoute ?? null }
    })

    const response = await request(app).post('/v1/nope').send({})

    expect(response.status).toBe(404)
    expect(response.body).toEqual({ params: {}, matched: [], route: null })
  })

  test('a wrong method on one of our paths reaches the app, and our router leaves no trace in the context', async () => {
    const router = llmRouter(llm)
    const app = appOf(router.routes(), router.allowedMethods(), (ctx) => {
      ctx.status = 404
      ctx.body = { params: ctx.params ?? {}, matched: ctx.matched, route: ctx._matchedRoute ?? null }
    })

    for (const path of ['/api/tags', '/v1/models/team/tiny', '/v1/files/file_1']) {
      const response = await request(app).put(path).send({})

      expect(response.status).toBe(404)
      expect(response.body).toEqual({ params: {}, matched: [], route: null })
    }
  })

  test('a router of the app serves another method on one of our paths, with its own parameters', async () => {
    const own = new Router().put('/v1/models/:name', (ctx) => {
      ctx.body = ctx.params
    })
    const outer = new Router().use(llmRouter(llm).routes()).use(own.routes())
    const apps = [appOf(llmRouter(llm).routes(), own.routes()), appOf(outer.routes())]

    for (const app of apps) {
      const response = await request(app).put('/v1/models/tiny')

      expect(response.body).toEqual({ name: 'tiny' })
    }
  })

  test('with unknownRoutes: error, an unknown path gets the 404 of its API', async () => {
    const app = appOf(llmRouter(llm, { unknownRoutes: 'error' }).routes(), users.routes())

    const response = await request(app).get('/api/users')

    expect(response.status).toBe(404)
    expect(response.text).toBe('404 page not found')
  })

  test.each([
    ['DELETE', chat, 'POST'],
    ['HEAD', chat, 'POST'],
    ['PROPFIND', chat, 'POST'],
    ['POST', '/v1/models/tiny', 'GET, HEAD, DELETE'],
  ])(
    'with unknownRoutes: error, %s %s gets our 405 with the allowed methods',
    async (method, path, allowed) => {
      const router = llmRouter(llm, { unknownRoutes: 'error' })
      const app = appOf(router.allowedMethods({ throw: true }), router.routes())
      const { url, close } = await listen(app)
      onTestFinished(close)

      const response = await fetch(url + path, { method })

      expect(response.status).toBe(405)
      expect(response.headers.get('allow')).toBe(allowed)
      expect(response.headers.get('x-request-id')).toMatch(/^req_/)
      if (method !== 'HEAD')
        expect(await response.json()).toMatchObject({ error: { code: 'method_not_supported' } })
    },
  )

  test('the router answers OPTIONS on our paths', async () => {
    const router = llmRouter(llm)
    const app = appOf(router.routes(), router.allowedMethods())

    const response = await request(app).options(chat)

    expect(response.status).toBe(204)
    expect(response.headers.allow).toBe('POST')
  })

  test('the routers of the app answer OPTIONS on other paths from their own routes', async () => {
    const router = llmRouter(llm)
    const app = appOf(router.routes(), router.allowedMethods(), users.routes(), users.allowedMethods())

    const theirs = await request(app).options('/api/users')
    const nobodys = await request(app).options('/nowhere')

    expect(theirs.status).toBe(200)
    expect(theirs.headers.allow).toBe('HEAD, GET')
    expect(nobodys.status).toBe(404)
    expect(nobodys.headers).not.toHaveProperty('allow')
  })

  test('our router inside a router of the app passes unknown paths on', async () => {
    const outer = new Router().use(llmRouter(llm).routes()).use(users.routes())

    const ours = await request(appOf(outer.routes())).get('/v1/models/tiny')
    const theirs = await request(appOf(outer.routes())).get('/api/users')

    expect(ours.body.id).toBe('tiny')
    expect(theirs.body).toEqual(['ann'])
  })
})

const below: readonly (readonly [how: string, mount: (router: Router) => Middleware])[] = [
  ['router.prefix()', (router) => router.prefix('/ai').routes()],
  ['another router', (router) => new Router().use('/ai', router.routes()).routes()],
  ['another router with a prefix', (router) => new Router({ prefix: '/ai' }).use(router.routes()).routes()],
  ['two routers', (router) => new Router({ prefix: '/a' }).use('/i', router.prefix('/b').routes()).routes()],
]

describe.each(below)('under a prefix by %s', (how, mount) => {
  const prefix = how === 'two routers' ? '/a/i/b' : '/ai'

  test('our routes answer', async () => {
    const app = appOf(mount(llmRouter(llm)))

    const answer = await request(app)
      .post(prefix + chat)
      .send(hello)
    const model = await request(app).get(`${prefix}/v1/models/tiny`)

    expect(answer.body.choices[0].message.content).toBe('Hello there.')
    expect(model.body.id).toBe('tiny')
  })

  test('errors for unknown paths and wrong methods name the path below the prefix', async () => {
    const app = appOf(mount(llmRouter(llm)))

    const path = await request(app).get(`${prefix}/v1/nope`)
    const method = await request(app).delete(prefix + chat)

    expect([path.status, path.body.error.message]).toEqual([404, 'Invalid URL (GET /v1/nope)'])
    expect([method.status, method.body.error.message]).toEqual([
      405,
      'DELETE is not allowed on /v1/chat/completions. Allowed: POST.',
    ])
  })

  test.each(['', '/'])('the prefix, followed by %j, answers with the greeting of Ollama', async (slash) => {
    const app = appOf(mount(llmRouter(llm)))

    const response = await request(app).get(prefix + slash)

    expect([response.status, response.text]).toEqual([200, 'Ollama is running'])
  })

  test('with unknownRoutes: pass, an unknown path falls through', async () => {
    const app = appOf(mount(llmRouter(llm, { unknownRoutes: 'pass' })), (ctx) => {
      ctx.body = 'the app'
    })

    const response = await request(app).get(`${prefix}/users`)

    expect(response.text).toBe('the app')
  })

  test('OPTIONS on other paths is passed to the host app', async () => {
    const app = appOf(mount(llmRouter(llm)), (ctx) => {
      ctx.body = 'the app'
    })

    const response = await request(app).options(`${prefix}/users`)

    expect(response.text).toBe('the app')
  })

  test('paths outside the prefix are passed to the host app', async () => {
    const app = appOf(mount(llmRouter(llm)), (ctx) => {
      ctx.body = 'the app'
    })

    const responses = [await request(app).get('/v1/models'), await request(app).get(`${prefix}s/v1/models`)]

    expect(responses.map(({ text }) => text)).toEqual(['the app', 'the app'])
  })

  test('a path that cannot be percent-decoded gets the 404 of its API', async () => {
    const app = appOf(mount(llmRouter(llm)))

    const model = await request(app).get(`${prefix}/v1/models/%ff`)
    const other = await request(app).get(`${prefix}/%ff`)

    expect([model.status, model.body.error.type]).toEqual([404, 'invalid_request_error'])
    expect([other.status, other.text]).toEqual([404, expect.stringMatching(/page not found|Invalid URL/)])
  })
})

test('a prefix may have parameters, which the option `authenticate` sees', async () => {
  const hosted = await createLlm({ engine, models, auth: 'host' })
  const router = llmRouter(hosted, { authenticate: (ctx) => ({ id: ctx.params.team ?? 'nobody' }) })
  const app = appOf(router.prefix('/teams/:team').routes())

  const model = await request(app).get('/teams/blue/v1/models/tiny')
  const unknown = await request(app).get('/teams/blue/v1/nope')

  expect(model.body.id).toBe('tiny')
  expect([unknown.status, unknown.body.error.message]).toEqual([404, 'Invalid URL (GET /teams/blue/v1/nope)'])
})

test('if middleware removes the prefix from the path, as koa-mount does, the routes behave as at the root', async () => {
  const cut: Middleware = (ctx, next) => {
    ctx.path = ctx.path.replace(/^\/ai/, '')
    return next()
  }

  const passing = appOf(cut, llmRouter(llm).routes())
  const refusing = appOf(cut, llmRouter(llm, { unknownRoutes: 'error' }).routes())

  expect((await request(passing).post(`/ai${chat}`).send(hello)).status).toBe(200)
  expect((await request(passing).get('/ai/v1/nope')).text).toBe('Not Found')
  expect((await request(refusing).get('/ai/v1/nope')).body.error.message).toBe('Invalid URL (GET /v1/nope)')
})

test('HEAD on a GET route answers with its headers and no body', async () => {
  const app = appOf(llmRouter(llm).routes())

  const whole = await request(app).get('/v1/models')
  const head = await request(app).head('/v1/models')

  expect(head.status).toBe(200)
  expect(head.headers['content-type']).toMatch(/^application\/json/)
  expect(head.headers['content-length']).toBe(whole.headers['content-length'])
  expect(head.text).toBeUndefined()
})

test('paths are case-sensitive, even inside a router that is not', async () => {
  const app = appOf(new Router().use('/ai', llmRouter(llm).routes()).routes())

  const response = await request(app).get('/ai/V1/models')

  expect(response.status).toBe(404)
})

test('invalid options throw at mounting, not at the first call', () => {
  expect(() => llmRouter(llm, { dialects: [] })).toThrow(TypeError)
})

test('with auth: host, the app names the caller, and a request without a caller gets the 401 of its API', async () => {
  const callers: Record<string, Caller> = { ada: { id: 'ada' }, guest: { id: 'guest', scopes: [] } }
  const hosted = await createLlm({ engine, models, auth: 'host' })
  const router = llmRouter(hosted, { authenticate: async (ctx) => callers[ctx.get('x-user')] })
  const app = appOf(router.routes())

  const ada = await request(app).get('/v1/models').set('x-user', 'ada')
  const guest = await request(app).get('/v1/models').set('x-user', 'guest')
  const nobody = await request(app).get('/v1/models')

  expect([ada.status, guest.status, nobody.status]).toEqual([200, 403, 401])
  expect(nobody.body.error).toMatchObject({ type: 'invalid_request_error', code: 'invalid_api_key' })
})

test('with auth: host, a missing authenticate option throws at mounting', async () => {
  const hosted = await createLlm({ engine, models, auth: 'host' })

  expect(() => llmRouter(hosted)).toThrow(TypeError)
})

test('an invalid body limit throws at mounting', () => {
  expect(() => llmRouter(llm, { bodyLimit: 'much' as '1mb' })).toThrow(TypeError)
})

describe('bodies', () => {
  const before = (router: Router) => appOf(router.routes(), bodyParser())
  const behind = (router: Router) => appOf(bodyParser(), router.routes())

  test.each([
    ['before', before],
    ['behind', behind],
  ])('JSON is accepted %s bodyParser()', async (_place, mount) => {
    const app = mount(llmRouter(llm))

    const response = await request(app).post(chat).send(hello)

    expect(response.body.choices[0].message.content).toBe('Hello there.')
    expect(engine.requests.at(-1)?.input).toMatchObject({
      messages: [{ content: [{ type: 'text', text: 'Hello' }] }],
    })
  })

  test('the router reads a body that bodyParser() ignores', async () => {
    const app = behind(llmRouter(llm))

    const response = await request(app).post(chat).type('text/plain').send(JSON.stringify(hello))

    expect(response.body.choices[0].message.content).toBe('Hello there.')
  })

  test('the router accepts a body that bodyParser() has decompressed', async () => {
    const { url, close } = await listen(behind(llmRouter(llm)))
    onTestFinished(close)

    const response = await fetch(url + chat, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
      body: gzipSync(JSON.stringify(hello)),
    })

    expect(response.status).toBe(200)
  })

  test.each([
    ['broken JSON', 400, '{"model":'],
    ['a body over 1 MB', 413, JSON.stringify({ ...hello, user: 'x'.repeat(1024 ** 2) })],
  ])('%s is answered by Koa, with %i, behind bodyParser()', async (_what, status, body) => {
    const response = await request(behind(llmRouter(llm)))
      .post(chat)
      .type('json')
      .send(body)

    expect(response.status).toBe(status)
    expect(response.headers).not.toHaveProperty('x-request-id')
  })

  test('the router handles broken JSON and a body over 1 MB before bodyParser()', async () => {
    const app = before(llmRouter(llm))

    const broken = await request(app).post(chat).type('json').send('{"model":')
    const large = await request(app)
      .post(chat)
      .send({ ...hello, user: 'x'.repeat(1024 ** 2) })

    expect(broken.status).toBe(400)
    expect(broken.body.error.message).toBe('The request body is not valid JSON.')
    expect(large.status).toBe(200)
  })

  test("behind bodyParser(), JSON with curl's content-type is read as a form, and rejected with a hint", async () => {
    const response = await request(behind(llmRouter(llm)))
      .post(chat)
      .type('application/x-www-form-urlencoded')
      .send(JSON.stringify(hello))

    expect(response.status).toBe(400)
    expect(response.body.error.message).toContain('mount the routes before the body parser')
  })

  test('a body that earlier middleware consumed is rejected with a hint', async () => {
    const eat: Middleware = async (ctx, next) => {
      await ctx.req.resume().toArray()
      await next()
    }

    const response = await request(appOf(eat, llmRouter(llm).routes()))
      .post(chat)
      .send(hello)

    expect(response.status).toBe(400)
    expect(response.body.error.message).toContain('Earlier middleware consumed the request body')
  })

  test('a body over bodyLimit gets the 413 of its API', async () => {
    const app = appOf(llmRouter(llm, { bodyLimit: '1kb' }).routes())

    const response = await request(app)
      .post(chat)
      .send({ ...hello, user: 'x'.repeat(1024) })

    expect(response.status).toBe(413)
    expect(response.body.error.code).toBe('request_too_large')
  })
})

describe('middleware in front', () => {
  test('sees the status and the body, and may still add headers', async () => {
    const seen: object[] = []
    const look: Middleware = async (ctx, next) => {
      await next()
      seen.push({ status: ctx.status, type: ctx.type, body: typeof ctx.body })
      ctx.set('x-seen', 'yes')
    }
    const app = appOf(look, llmRouter(llm, { unknownRoutes: 'error' }).routes())

    const responses = [
      await request(app).post(chat).send(hello),
      await request(app)
        .post(chat)
        .send({ ...hello, stream: true }),
      await request(app).post(chat).send({}),
      await request(app).delete(chat),
      await request(app).options(chat),
    ]

    expect(seen).toEqual([
      { status: 200, type: 'application/json', body: 'string' },
      { status: 200, type: 'text/event-stream', body: 'object' },
      { status: 400, type: 'application/json', body: 'string' },
      { status: 405, type: 'application/json', body: 'string' },
      { status: 204, type: '', body: 'object' },
    ])
    for (const { headers } of responses) expect(headers['x-seen']).toBe('yes')
  })

  test.each<[name: string, ...middlewares: Middleware[]]>([
    ['nothing'],
    ['bodyParser()', bodyParser()],
    ['compress()', compress()],
    ['cors()', cors()],
  ])('a stream arrives piece by piece and uncompressed behind %s', async (_name, ...middlewares) => {
    const long = scriptedEngine('word '.repeat(2_000), { delayMs: 5 })
    const router = llmRouter(await createLlm({ engine: long, models }))
    const { url, close } = await listen(appOf(...middlewares, router.routes()))
    onTestFinished(close)

    const response = await ask(url, { 'accept-encoding': 'gzip' })
    const contents: string[] = []
    for await (const { data } of readEvents(response.body as ReadableStream<Uint8Array>)) {
      contents.push(JSON.parse(data).choices[0].delta.content)
      expect(long.running).toBe(1)
      if (contents.length === 3) break
    }

    expect(contents).toEqual(['', 'word', ' word'])
    expect(response.headers.get('content-encoding')).toBeNull()
  })

  test('compresses long answers without streaming, with compress()', async () => {
    const story = 'Once upon a time. '.repeat(100)
    const router = llmRouter(await createLlm({ engine: scriptedEngine(story), models }))
    const app = appOf(compress(), router.routes())

    const response = await request(app).post(chat).set('accept-encoding', 'gzip').send(hello)

    expect(response.headers['content-encoding']).toBe('gzip')
    expect(response.body.choices[0].message.content).toBe(story)
  })

  test('answers preflight requests and sets headers that stay, with cors()', async () => {
    const app = appOf(cors({ credentials: true }), llmRouter(llm, { unknownRoutes: 'error' }).routes())
    const page = { origin: 'http://localhost:5173' }

    const preflight = await request(app)
      .options(chat)
      .set({ ...page, 'access-control-request-method': 'POST' })
    const responses = [
      await request(app).post(chat).set(page).send(hello),
      await request(app)
        .post(chat)
        .set(page)
        .send({ ...hello, stream: true }),
      await request(app).post(chat).set(page).send({}),
      await request(app).delete(chat).set(page),
    ]

    expect(preflight.status).toBe(204)
    expect(preflight.headers['access-control-allow-methods']).toContain('POST')
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 400, 405])
    for (const { headers } of responses) expect(headers['access-control-allow-credentials']).toBe('true')
  })
})

describe('a stream that is not read to its end', () => {
  const long = scriptedEngine('word '.repeat(2_000), { delayMs: 5 })

  const serve = async (...inFront: readonly Middleware[]) => {
    const router = llmRouter(await createLlm({ engine: long, models }))
    const { url, close } = await listen(appOf(...inFront, router.routes()))
    onTestFinished(close)
    return url
  }

  test('is closed when the client disconnects before Koa writes', async () => {
    let write = (): void => {}
    const written = new Promise<void>((resolve) => {
      write = resolve
    })
    const url = await serve(async (_ctx, next) => {
      await next()
      await written
    })
    const controller = new AbortController()
    const response = ask(url, {}, controller.signal)
    await expect.poll(() => long.running, soon).toBe(1)

    controller.abort()

    await expect(response).rejects.toThrow('aborted')
    await expect.poll(() => long.running, soon).toBe(0)
    write()
  })

  test.each<[what: string, status: number, middleware: Middleware]>([
    [
      'throws',
      500,
      async (_ctx, next) => {
        await next()
        throw new Error('no')
      },
    ],
    [
      'sets another body',
      200,
      async (ctx, next) => {
        await next()
        ctx.body = 'no'
      },
    ],
  ])('is closed when middleware in front %s', async (_what, status, middleware) => {
    const requestsBefore = long.requests.length
    const url = await serve(middleware)

    const response = await ask(url)

    expect(response.status).toBe(status)
    expect(long.requests).toHaveLength(requestsBefore + 1)
    await expect.poll(() => long.running, soon).toBe(0)
  })
})

const ask = (url: string, headers: Record<string, string> = {}, signal: AbortSignal | null = null) =>
  fetch(url + chat, { method: 'POST', headers, body: JSON.stringify({ ...hello, stream: true }), signal })
