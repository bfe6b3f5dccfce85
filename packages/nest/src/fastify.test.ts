/** The module in an app on Fastify, with guards, interceptors, prefixes and body parsers of the app. */
import { createLlm } from '@modelmount/core'
import { createRateLimiter } from '@modelmount/core/limits'
import { readEvents, scriptedEngine } from '@modelmount/core/testing'
import {
  Body,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Module,
  type NestInterceptor,
  Post,
  type Provider,
} from '@nestjs/common'
import { APP_GUARD, APP_INTERCEPTOR, NestFactory } from '@nestjs/core'
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify'
import { Test } from '@nestjs/testing'
import type { FastifyRequest } from 'fastify'
import { map } from 'rxjs'
import { expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../../test/support/empty-folder.ts'
import { LlmModule, type LlmModuleExtras, RATE_LIMITER, RateLimitGuard } from './index.ts'

const models = emptyFolder()
const engine = scriptedEngine('Hello there.')
const llm = await createLlm({ engine, models })
const hello = { model: 'tiny', messages: [{ role: 'user', content: 'Hi' }] }
const chat = '/v1/chat/completions'
const soon = { interval: 2, timeout: 2_000 }

@Controller('users')
class Users {
  @Get()
  list() {
    return ['ada']
  }
  @Post()
  create(@Body() body: unknown) {
    return { created: body }
  }
}

/** Starts an app with a controller of its own. */
async function appOf(
  options: LlmModuleExtras & Parameters<typeof LlmModule.forRoot>[0] = { llm },
  providers: Provider[] = [],
  prepare: (app: NestFastifyApplication) => void = () => {},
): Promise<NestFastifyApplication> {
  @Module({ imports: [LlmModule.forRoot(options)], controllers: [Users], providers })
  class AppModule {}
  const app = await NestFactory.create<NestFastifyApplication>(AppModule, new FastifyAdapter(), {
    logger: false,
    forceCloseConnections: true,
  })
  onTestFinished(() => app.close())
  prepare(app)
  await app.init()
  return app
}

const ask = (app: NestFastifyApplication, payload: object = hello, url = chat, headers = {}) =>
  app.inject({ method: 'POST', url, payload, headers })

test('answers and streams arrive below the prefixes, and the controllers and the 404 of the app stay', async () => {
  const app = await appOf({ llm, path: 'llm' }, [], (app) => void app.setGlobalPrefix('api'))

  const answer = await ask(app, hello, `/api/llm${chat}`)
  const stream = await ask(app, { ...hello, stream: true }, `/api/llm${chat}`)
  const users = await app.inject({ method: 'POST', url: '/api/users', payload: { name: 'Ada' } })
  const unknown = await app.inject('/nope')

  expect(answer.json().choices[0].message.content).toBe('Hello there.')
  expect(stream.headers['content-type']).toBe('text/event-stream; charset=utf-8')
  expect(stream.body).toContain('data: [DONE]')
  expect(users.json()).toEqual({ created: { name: 'Ada' } })
  expect(unknown.json().message).toBe('Cannot GET /nope')
})

test('errors name the path below the prefixes', async () => {
  const app = await appOf({ llm, path: 'llm' }, [], (app) => void app.setGlobalPrefix('api'))

  const model = await app.inject('/api/llm/v1/models/a/b')
  const method = await app.inject({ method: 'PUT', url: '/api/llm/v1/models/a/b' })
  const unknown = await app.inject('/api/llm/v1/nope?x=/1')
  const home = await app.inject('/api/llm')

  expect(model.json().error.message).toBe('model "a/b" not found')
  expect([method.statusCode, method.headers.allow]).toEqual([405, 'GET, HEAD, DELETE'])
  expect(method.json().error.message).toBe(
    'PUT is not allowed on /v1/models/a/b. Allowed: GET, HEAD, DELETE.',
  )
  expect([unknown.statusCode, unknown.json().error.message]).toEqual([404, 'Invalid URL (GET /v1/nope)'])
  expect(home.body).toBe('Ollama is running')
})

test('other methods with a body, and empty parameters, reach no route', async () => {
  const app = await appOf({ llm, path: 'llm' })

  const query = await app.inject({ method: 'QUERY' as 'POST', url: `/llm${chat}`, payload: hello })
  const file = await app.inject('/llm/v1/files/')
  const model = await app.inject('/llm/v1/models/')
  const head = await app.inject({ method: 'HEAD', url: '/llm/v1/models' })

  expect([query.statusCode, query.headers.allow]).toEqual([405, 'POST'])
  expect([file.statusCode, file.json().message]).toEqual([404, 'Cannot GET /llm/v1/files/'])
  expect([model.statusCode, model.json().error.code]).toEqual([404, 'model_not_found'])
  expect([head.statusCode, head.body]).toEqual([200, ''])
})

test('two modules share nothing', async () => {
  const german = await createLlm({ engine: scriptedEngine('Guten Tag.'), models })
  @Module({
    imports: [LlmModule.forRoot({ llm, path: 'en' }), LlmModule.forRoot({ llm: german, path: 'de' })],
  })
  class AppModule {}
  const app = await NestFactory.create<NestFastifyApplication>(AppModule, new FastifyAdapter(), {
    logger: false,
  })
  onTestFinished(() => app.close())
  await app.init()

  const answers = [await ask(app, hello, `/en${chat}`), await ask(app, hello, `/de${chat}`)]

  expect(answers.map((answer) => answer.json().choices[0].message.content)).toEqual([
    'Hello there.',
    'Guten Tag.',
  ])
})

test('an app of a testing module serves the routes', async () => {
  const module = await Test.createTestingModule({ imports: [LlmModule.forRoot({ llm })] }).compile()
  const app = module.createNestApplication<NestFastifyApplication>(new FastifyAdapter(), { logger: false })
  onTestFinished(() => app.close())
  await app.init()

  const [answer, model] = [await ask(app), await app.inject('/v1/models/tiny')]

  expect([answer.statusCode, model.json().id]).toEqual([200, 'tiny'])
})

test('the admin API is mounted at adminPath', async () => {
  const keyed = await createLlm({ engine, models, auth: 'keys', database: ':memory:' })
  onTestFinished(() => keyed.close())
  const { secret } = await keyed.keys.create({ name: 'ops', scopes: ['admin'] })
  const app = await appOf({ llm: keyed, adminPath: 'admin' })
  const get = (headers: object) => app.inject({ url: '/admin/keys', headers: { ...headers } })

  const [known, unknown] = [await get({ authorization: `Bearer ${secret}` }), await get({})]

  expect([known.statusCode, unknown.statusCode]).toEqual([200, 401])
})

test('guards of the app run, see the headers of the client, and reject in the format of the dialect', async () => {
  const types: unknown[] = []
  const guard: CanActivate = {
    canActivate(context: ExecutionContext) {
      const { headers } = context.switchToHttp().getRequest<FastifyRequest>()
      types.push(headers['content-type'])
      context.switchToHttp().getResponse().header('x-early', 'yes')
      if (headers.authorization === 'Bearer bug') throw new Error('secret')
      return headers.authorization === 'Bearer ada'
    },
  }
  const app = await appOf(
    { llm, path: 'llm' },
    [{ provide: APP_GUARD, useValue: guard }],
    (app) => void app.setGlobalPrefix('api'),
  )
  const call = (authorization: string, url: string) => ask(app, hello, `/api/llm${url}`, { authorization })

  const admitted = await call('Bearer ada', chat)
  const rejected = await call('', '/v1/messages')
  const broken = await call('Bearer bug', chat)
  const theirs = await app.inject('/api/users')

  expect([admitted.statusCode, admitted.headers['x-early']]).toEqual([200, 'yes'])
  expect([rejected.statusCode, rejected.headers['x-early']]).toEqual([403, 'yes'])
  expect(rejected.json()).toMatchObject({
    type: 'error',
    error: { type: 'permission_error', message: 'Forbidden resource' },
  })
  expect([broken.statusCode, broken.json().error.type]).toEqual([500, 'server_error'])
  expect(broken.body).not.toContain('secret')
  expect(theirs.json()).toEqual({ statusCode: 403, message: 'Forbidden resource', error: 'Forbidden' })
  expect(types.slice(0, 3)).toEqual(Array(3).fill('application/json'))
})

test('`authenticate` gets the request of Fastify, with the user that a guard has found', async () => {
  const hosted = await createLlm({ engine, models, auth: 'host' })
  const guard: CanActivate = {
    canActivate(context) {
      const request = context.switchToHttp().getRequest()
      if (request.headers.authorization === 'Bearer ada') request.user = { id: 'ada' }
      return true
    },
  }
  const app = await appOf(
    {
      llm: hosted,
      authenticate: (request: FastifyRequest & { user?: { id: string } }) => request.user,
    },
    [{ provide: APP_GUARD, useValue: guard }],
  )

  const [ada, unknown] = [await ask(app, hello, chat, { authorization: 'Bearer ada' }), await ask(app)]

  expect([ada.statusCode, unknown.statusCode]).toEqual([200, 401])
})

test.each(['application/x-www-form-urlencoded', 'text/plain', 'nonsense'])(
  'JSON over the limit of the app is accepted with the content-type %s',
  async (type) => {
    const app = await appOf()
    const large = JSON.stringify({ ...hello, user: 'x'.repeat(2 * 1024 ** 2) })

    const ours = await app.inject({
      method: 'POST',
      url: chat,
      headers: { 'content-type': type },
      payload: large,
    })
    const theirs = await app.inject({
      method: 'POST',
      url: '/users',
      headers: { 'content-type': 'application/json' },
      payload: large,
    })

    expect(ours.statusCode).toBe(200)
    expect(theirs.statusCode).toBe(413)
  },
)

test('a body over bodyLimit and broken JSON get the errors of their API', async () => {
  const app = await appOf({ llm, bodyLimit: '1kb' })
  const post = (payload: string) =>
    app.inject({ method: 'POST', url: chat, headers: { 'content-type': 'application/json' }, payload })

  const tooLarge = await post(JSON.stringify({ ...hello, user: 'x'.repeat(2_000) }))
  const broken = await post('{"model":')

  expect([tooLarge.statusCode, tooLarge.json().error.code]).toEqual([413, 'request_too_large'])
  expect([broken.statusCode, broken.json().error.message]).toEqual([
    400,
    'The request body is not valid JSON.',
  ])
})

test('a stream arrives piece by piece, and the generation ends when the client disconnects', async () => {
  const long = scriptedEngine('word '.repeat(2_000), { delayMs: 5 })
  const app = await appOf({ engine: long, models })
  await app.listen(0, '127.0.0.1')
  const controller = new AbortController()

  const response = await fetch((await app.getUrl()) + chat, {
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

test('an interceptor that replaces our stream stops the generation', async () => {
  const slow = scriptedEngine(Array(1_000).fill('word '), { delayMs: 1 })
  const interceptor: NestInterceptor = {
    intercept: (_context, next) => next.handle().pipe(map(() => ({ from: 'the app' }))),
  }
  const app = await appOf({ engine: slow, models }, [{ provide: APP_INTERCEPTOR, useValue: interceptor }])

  const answer = await ask(app, { ...hello, stream: true })

  expect(answer.body).toBe('{"from":"the app"}')
  expect(slow.requests).toHaveLength(1)
  await expect.poll(() => slow.running, soon).toBe(0)
})

test('RateLimitGuard limits all routes, and sets its headers', async () => {
  const limiter = createRateLimiter({ limits: { requestsPerMinute: 1 } })
  const app = await appOf({ llm }, [
    { provide: RATE_LIMITER, useValue: limiter },
    { provide: APP_GUARD, useClass: RateLimitGuard },
  ])

  const [first, second] = [await ask(app), await ask(app)]

  expect([first.statusCode, second.statusCode]).toEqual([200, 429])
  expect(first.headers['x-ratelimit-limit-requests']).toBe('1')
  expect(second.json().error.type).toBe('requests')
  expect(second.headers['retry-after']).toBe('60')
})
