/** The module together with other modules, guards, interceptors, prefixes and body parsers. */
import { createLlm, type Llm, LlmError } from '@modelmount/core'
import { type Engine, uncached } from '@modelmount/core/engine'
import { readEvents, scriptedEngine } from '@modelmount/core/testing'
import {
  BadRequestException,
  type CallHandler,
  type CanActivate,
  Controller,
  type DynamicModule,
  type ExecutionContext,
  Get,
  HttpException,
  type INestApplication,
  Injectable,
  type LoggerService,
  Module,
  type NestInterceptor,
  StreamableFile,
  type Type,
  UnauthorizedException,
  VersioningType,
} from '@nestjs/common'
import { APP_GUARD, APP_INTERCEPTOR, NestFactory } from '@nestjs/core'
import type { NestExpressApplication } from '@nestjs/platform-express'
import { Test } from '@nestjs/testing'
import compression from 'compression'
import type { Request, RequestHandler } from 'express'
import OpenAI, { AuthenticationError, PermissionDeniedError, RateLimitError } from 'openai'
import { map, type Observable, of } from 'rxjs'
import request from 'supertest'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { emptyFolder } from '../../../test/support/empty-folder.ts'
import { until } from '../../../test/support/processes.ts'
import { InjectLlm, LLM, LlmModule, type LlmModuleOptions, type LlmRequest } from './index.ts'

const models = emptyFolder()
const engine = scriptedEngine('Hello there.')
const hello = { model: 'tiny', messages: [{ role: 'user' as const, content: 'Hello' }] }
const chat = '/v1/chat/completions'

describe('forRoot', () => {
  test('a chat gets a complete answer with 200, or a stream', async () => {
    const { url } = await serve([LlmModule.forRoot({ engine, models })])
    const client = clientOf(url)

    const { data, response } = await client.chat.completions.create(hello).withResponse()
    const stream = await client.chat.completions.create({ ...hello, stream: true })
    const texts: string[] = []
    for await (const { choices } of stream) texts.push(choices[0]?.delta.content ?? '')

    expect(response.status).toBe(200)
    expect(data.choices[0]?.message.content).toBe('Hello there.')
    expect(texts.join('')).toBe('Hello there.')
  })

  test('without options, the Llm has the defaults of createLlm()', async () => {
    vi.stubEnv('OLLAMA_MODELS', models)
    onTestFinished(() => void vi.unstubAllEnvs())

    const { url } = await serve([LlmModule.forRoot()])

    const { data } = await clientOf(url).models.list()
    expect(data.map(({ id }) => id)).toEqual(['tiny:latest'])
  })

  test('an unknown dialect and an invalid body limit throw', () => {
    expect(() => LlmModule.forRoot({ dialects: ['latin' as 'openai'] })).toThrow(TypeError)
    expect(() => LlmModule.forRoot({ bodyLimit: 'much' as '1mb' })).toThrow(TypeError)
  })

  test('two modules share nothing', async () => {
    const german = scriptedEngine('Guten Tag.')
    const { url } = await serve([
      LlmModule.forRoot({ engine, models, path: 'en' }),
      LlmModule.forRoot({ engine: german, models, path: 'de' }),
    ])
    const before = engine.requests.length

    const answers = await Promise.all(['en', 'de'].map((path) => contentOf(clientOf(`${url}/${path}`))))

    expect(answers).toEqual(['Hello there.', 'Guten Tag.'])
    expect(engine.requests.length - before).toBe(1)
    expect(german.requests).toHaveLength(1)
  })
})

describe('forRootAsync', () => {
  test('the options come from a provider of another module', async () => {
    class Config {
      readonly engine = scriptedEngine('As configured.')
    }
    @Module({ providers: [Config], exports: [Config] })
    class ConfigModule {}

    const { url } = await serve([
      LlmModule.forRootAsync({
        dialects: ['openai'],
        path: 'llm',
        imports: [ConfigModule],
        inject: [Config],
        useFactory: async (config: Config) => ({ engine: config.engine, models }),
      }),
    ])

    expect(await contentOf(clientOf(`${url}/llm`))).toBe('As configured.')
  })

  test('an option that createLlm() rejects stops the start of the app', async () => {
    const module = LlmModule.forRootAsync({ useFactory: () => ({ models, local: { threads: 0 } }) })

    const starting = NestFactory.create(module, { logger: false, abortOnError: false })

    await expect(starting).rejects.toThrow('Expected `local.threads` to be')
  })

  test('a route option that the factory returns stops the start of the app', async () => {
    const module = LlmModule.forRootAsync({ useFactory: () => ({ models, path: 'llm' }) })

    const starting = NestFactory.create(module, { logger: false, abortOnError: false })

    await expect(starting).rejects.toThrow('Unknown option `path`')
  })
})

describe('injection', () => {
  @Controller('stories')
  class Stories {
    readonly llm: Llm

    constructor(@InjectLlm() llm: Llm) {
      this.llm = llm
    }

    @Get()
    async story() {
      const { text } = await this.llm.chat('Tell me a story.', { model: 'tiny' })
      return { text }
    }
  }
  @Module({ controllers: [Stories] })
  class StoriesModule {}

  test('a controller of the app asks the model', async () => {
    const { server } = await serve([LlmModule.forRoot({ engine, models })], { controllers: [Stories] })

    const { body } = await request(server).get('/stories').expect(200)

    expect(body).toEqual({ text: 'Hello there.' })
  })

  test('with isGlobal, modules can inject the Llm without importing the module', async () => {
    const { server } = await serve([LlmModule.forRoot({ engine, models, isGlobal: true }), StoriesModule])
    await request(server).get('/stories').expect(200)

    const local = serve([LlmModule.forRoot({ engine, models }), StoriesModule])
    await expect(local).rejects.toThrow("Nest can't resolve dependencies of the Stories")
  })

  test('a test of the app can override the Llm', async () => {
    const mocked = await createLlm({ engine: scriptedEngine('From the test.'), models })
    const compiled = await Test.createTestingModule({ imports: [LlmModule.forRoot()] })
      .overrideProvider(LLM)
      .useValue(mocked)
      .compile()
    const app = compiled.createNestApplication({ logger: false })
    onTestFinished(() => app.close())
    await app.init()

    const { body } = await request(app.getHttpServer()).post(chat).send(hello)

    expect(body.choices[0].message.content).toBe('From the test.')
  })
})

test('a test can override the Llm by a fake with some of its methods', async () => {
  @Controller('stories')
  class Stories {
    readonly #llm: Llm
    constructor(@InjectLlm() llm: Llm) {
      this.#llm = llm
    }
    @Get()
    async tell() {
      return (await this.#llm.chat('Tell me a story.')).text
    }
  }
  const authenticate = () => ({ id: 'ann' })
  const compiled = await Test.createTestingModule({
    imports: [LlmModule.forRoot({ auth: 'host', authenticate, path: 'llm', adminPath: 'admin' })],
    controllers: [Stories],
  })
    .overrideProvider(LLM)
    .useValue({ chat: async () => ({ text: 'Once upon a time.' }) })
    .compile()
  const app = compiled.createNestApplication({ logger: false })
  onTestFinished(() => app.close())
  await app.init()

  const story = await request(app.getHttpServer()).get('/stories')
  const models = await request(app.getHttpServer()).get('/llm/v1/models')

  expect(story.text).toBe('Once upon a time.')
  expect([models.status, models.body.error]).toEqual([
    500,
    'These routes need an Llm of createLlm(), and LLM is overridden by another object.',
  ])
})

test('an Llm of a test without the auth of the app stops the start', async () => {
  const authenticate = () => undefined
  const override = (llm: Llm) =>
    Test.createTestingModule({
      imports: [
        LlmModule.forRootAsync({ path: 'llm', authenticate, useFactory: () => ({ auth: 'host', engine }) }),
      ],
    })
      .overrideProvider(LLM)
      .useValue(llm)
      .compile()
  const [open, closed] = [
    await createLlm({ engine, models }),
    await createLlm({ auth: 'host', engine, models }),
  ]
  onTestFinished(async () => void (await Promise.all([open.close(), closed.close()])))

  await expect(override(open)).rejects.toThrow(
    "The option `authenticate` would never be called, because `auth` is 'anonymous': expected createLlm({ auth: 'host' }), also for the Llm of a test, or no `authenticate`",
  )
  const app = (await override(closed)).createNestApplication({ logger: false })
  onTestFinished(() => app.close())
  await app.init()
  await request(app.getHttpServer()).get('/llm/v1/models').expect(401)
})

test.each<[how: string, module: (options: () => LlmModuleOptions) => DynamicModule]>([
  ['forRoot', () => LlmModule.forRoot({ models: '/missing', local: { threads: 0 } })],
  ['forRootAsync', (useFactory) => LlmModule.forRootAsync({ useFactory })],
])('a test that overrides the Llm runs no factory of %s, and closes its Llm itself', async (_how, module) => {
  const useFactory = vi.fn(() => ({ models: '/missing', local: { threads: 0 } }))
  const fake = await createLlm({ engine: scriptedEngine('From the test.'), models })
  const close = vi.spyOn(fake, 'close')
  const compiled = await Test.createTestingModule({ imports: [module(useFactory)] })
    .overrideProvider(LLM)
    .useValue(fake)
    .compile()
  const app = compiled.createNestApplication({ logger: false })
  await app.init()

  const { body } = await request(app.getHttpServer()).post(chat).send(hello)
  await app.close()

  expect(body.choices[0].message.content).toBe('From the test.')
  expect(useFactory).not.toHaveBeenCalled()
  expect(close).not.toHaveBeenCalled()
})

test('an LlmError in a controller of the app is answered with its status and message', async () => {
  @Controller('stories')
  class Stories {
    readonly llm: Llm

    constructor(@InjectLlm() llm: Llm) {
      this.llm = llm
    }

    @Get()
    story() {
      return this.llm.chat('Tell me a story.')
    }
  }
  const full = scriptedEngine(() => new LlmError('overloaded', 'Full.'))
  const { server } = await serve([LlmModule.forRoot({ engine: full, models })], { controllers: [Stories] })

  const { body } = await request(server).get('/stories').expect(503)

  expect(body).toEqual({ statusCode: 503, message: 'Full.' })
})

describe('shutdown', () => {
  const closing = () => {
    const close = vi.fn(async () => {})
    return { close, engine: { ...scriptedEngine('Hello there.'), close } satisfies Engine }
  }

  test('the Llm is closed with the app', async () => {
    const { close, engine } = closing()
    const { app } = await serve([LlmModule.forRoot({ engine, models })])

    await app.close()

    expect(close).toHaveBeenCalledOnce()
  })

  test('closing the app waits for a running answer', async () => {
    const { gated, open } = twoPieces()
    const close = vi.spyOn(gated, 'close')
    const { app, url } = await serve([LlmModule.forRoot({ engine: gated, models })])
    const response = await stream(url)

    const ending = app.close()
    open()

    expect(await textsOf(response)).toEqual(['Hello', ' there.'])
    await ending
    expect(close).toHaveBeenCalledOnce()
  })

  test('with `shutdown`, a running answer ends before the server closes, and new calls are rejected', async () => {
    const { gated, open } = twoPieces()
    const { app, url } = await serve([
      LlmModule.forRoot({ engine: gated, models, shutdown: { drain: '1h' } }),
    ])
    const response = await stream(url)

    const ending = app.close()
    await vi.waitUntil(() => app.get<Llm>(LLM).isClosing)
    const rejected = await stream(url)
    open()

    expect([rejected.status, rejected.headers.get('retry-after')]).toEqual([503, '1'])
    expect(await textsOf(response)).toEqual(['Hello', ' there.'])
    await ending
  })

  test('with `shutdown`, a running answer ends at the deadline, and does not hold the server', async () => {
    const { gated } = twoPieces()
    const { app, url } = await serve([LlmModule.forRoot({ engine: gated, models, shutdown: { drain: 1 } })])
    const response = await stream(url)

    await app.close()

    expect(await response.text()).toContain('The server closed before the answer was complete.')
  })

  test('an invalid `shutdown` fails the start', async () => {
    const starting = serve([
      LlmModule.forRoot({ engine: closing().engine, models, shutdown: { drain: 'x' as '1s' } }),
    ])

    await expect(starting).rejects.toThrow('`drain`: Expected a duration')
  })

  test('an existing Llm is not closed with the app', async () => {
    const { close, engine } = closing()
    const llm = await createLlm({ engine, models })
    const { app } = await serve([LlmModule.forRoot({ llm })])

    await app.close()

    expect(close).not.toHaveBeenCalled()
  })
})

describe('guards', () => {
  /** A guard that accepts the key `ada` only. */
  @Injectable()
  class KeyGuard implements CanActivate {
    canActivate(context: ExecutionContext): boolean {
      const req = context.switchToHttp().getRequest<LlmRequest & { user?: { id: string } }>()
      const key = req.headers.authorization?.replace('Bearer ', '')
      if (key === 'ada') req.user = { id: 'ada' }
      if (key === 'nobody') throw new UnauthorizedException('This key is not known.')
      if (key === 'busy') {
        context.switchToHttp().getResponse().setHeader('retry-after', '7')
        throw new HttpException('Too many calls.', 429)
      }
      return key === 'ada'
    }
  }
  const guarded = { providers: [{ provide: APP_GUARD, useClass: KeyGuard }] }

  test.each([
    ['nobody', AuthenticationError, '401 This key is not known.', 'invalid_api_key'],
    ['guest', PermissionDeniedError, '403 Forbidden resource', null],
    ['busy', RateLimitError, '429 Too many calls.', 'rate_limit_exceeded'],
  ])(
    'the rejection that an APP_GUARD sends to the key %s is a typed error in the client',
    async (key, type, message, code) => {
      const { url } = await serve([LlmModule.forRoot({ engine, models })], guarded)

      const error = await contentOf(clientOf(url, key)).catch((error: unknown) => error)

      expect(error).toBeInstanceOf(type)
      expect(error).toMatchObject({ message, code, requestID: expect.stringMatching(/^req_/) })
    },
  )

  test('a rejection has the format of the dialect of the path, also behind prefixes', async () => {
    const modules = [LlmModule.forRoot({ engine, models, path: 'llm' })]
    const { server } = await serve(modules, guarded, { prepare: (app) => void app.setGlobalPrefix('api') })

    const { body } = await request(server).post('/api/llm/v1/messages').send({}).expect(403)

    expect(body).toMatchObject({
      type: 'error',
      error: { type: 'permission_error', message: 'Forbidden resource' },
    })
  })

  test('an admitted caller gets an answer, and a header that a guard has set stays', async () => {
    const { server, url } = await serve([LlmModule.forRoot({ engine, models })], guarded)

    const busy = await request(server).post(chat).auth('busy', { type: 'bearer' }).send(hello)

    expect(await contentOf(clientOf(url, 'ada'))).toBe('Hello there.')
    expect(busy.headers['retry-after']).toBe('7')
  })

  test('a rejection on a route of the app keeps the format of Nest', async () => {
    @Controller('mine')
    class Mine {
      @Get() get() {}
    }
    const { server } = await serve([LlmModule.forRoot({ engine, models })], {
      ...guarded,
      controllers: [Mine],
    })

    const { body } = await request(server).get('/mine').expect(403)

    expect(body).toEqual({ statusCode: 403, message: 'Forbidden resource', error: 'Forbidden' })
  })

  test('with `auth: host`, the caller is the user that the guard has found', async () => {
    const caller = vi.fn(({ user }: LlmRequest) => user as { id: string })
    const { server } = await serve(
      [LlmModule.forRoot({ engine, models, auth: 'host', authenticate: caller })],
      guarded,
    )

    await request(server).post(chat).auth('ada', { type: 'bearer' }).send(hello).expect(200)

    expect(caller).toHaveReturnedWith({ id: 'ada' })
  })

  test('with `auth: host`, a request without a caller gets the 401 of its API', async () => {
    const { url } = await serve([
      LlmModule.forRoot({ engine, models, auth: 'host', authenticate: (_req: Request) => undefined }),
    ])

    await expect(contentOf(clientOf(url))).rejects.toThrow(AuthenticationError)
  })

  test('with `auth: host`, an app without the option `authenticate` does not start', async () => {
    const starting = serve([LlmModule.forRoot({ engine, models, auth: 'host' })])

    await expect(starting).rejects.toThrow('expected the option `authenticate`')
  })

  test('an app with the admin API and without a database does not start', async () => {
    const starting = serve([LlmModule.forRoot({ engine, models, adminPath: 'admin' })])

    await expect(starting).rejects.toThrow('expected the option `database` of createLlm()')
  })
})

describe('exceptions of the app on our routes', () => {
  const throwing = (exception: unknown) => {
    const guard: CanActivate = {
      canActivate() {
        throw exception
      },
    }
    return { providers: [{ provide: APP_GUARD, useValue: guard }] }
  }

  test.each([
    [400, 'invalid_request_error', null],
    [402, 'insufficient_quota', 'insufficient_quota'],
    [404, 'invalid_request_error', null],
    [413, 'invalid_request_error', 'request_too_large'],
    [418, 'invalid_request_error', null],
    [500, 'server_error', null],
    [503, 'server_error', 'server_overloaded'],
    [507, 'server_error', null],
  ])('an exception with status %i keeps its status and its message', async (status, type, code) => {
    const modules = [LlmModule.forRoot({ engine, models })]
    const { server } = await serve(modules, throwing(new HttpException('Not now.', status)))

    const { body } = await request(server).post(chat).send(hello).expect(status)

    expect(body).toEqual({ error: { message: 'Not now.', type, param: null, code } })
  })

  test('a list of messages, as from ValidationPipe, becomes one message', async () => {
    const modules = [LlmModule.forRoot({ engine, models })]
    const { server } = await serve(modules, throwing(new BadRequestException(['Too long.', 'Too wide.'])))

    const { body } = await request(server).post(chat).send(hello).expect(400)

    expect(body.error.message).toBe('Too long., Too wide.')
  })

  test('an LlmError keeps its message and its code', async () => {
    const modules = [LlmModule.forRoot({ engine, models })]
    const { server } = await serve(modules, throwing(new LlmError('quota', 'All is spent.')))

    const { body } = await request(server).post(chat).send(hello).expect(429)

    expect(body.error).toMatchObject({ message: 'All is spent.', code: 'insufficient_quota' })
  })

  test('an unexpected error is a 500 without details, and a line in the log of Nest', async () => {
    const bug = new Error('secret')
    const { logger, lines } = recorder()
    const modules = [LlmModule.forRoot({ engine, models })]
    const { server } = await serve(modules, throwing(bug), { logger })

    const { body } = await request(server).post(chat).send(hello).expect(500)

    expect(JSON.stringify(body)).not.toContain('secret')
    expect(body.error.type).toBe('server_error')
    expect(lines.filter(([, logged]) => logged === bug)).toEqual([
      ['error', bug, undefined, 'ExceptionsHandler'],
    ])
  })

  test('an exception after the headers were sent ends the connection', async () => {
    const late: CanActivate = {
      canActivate(context) {
        context.switchToHttp().getResponse().flushHeaders()
        throw new UnauthorizedException()
      },
    }
    const modules = [LlmModule.forRoot({ engine, models })]
    const { server } = await serve(modules, { providers: [{ provide: APP_GUARD, useValue: late }] })

    await expect(request(server).post(chat).send(hello)).rejects.toThrow('aborted')
  })

  test.each([true, false])(
    'if earlier middleware has answered, our answer is dropped, with stream: %s',
    async (stream) => {
      const slow = scriptedEngine(Array(1_000).fill('word '), { delayMs: 1 })
      const { logger, lines } = recorder()
      const impatient: RequestHandler = (_req, res, next) => {
        res.status(503).send('too slow')
        next()
      }
      const { server } = await serve(
        [LlmModule.forRoot({ engine: slow, models })],
        {},
        { logger, prepare: (app) => void app.use(impatient) },
      )

      const { text } = await request(server)
        .post(chat)
        .send({ ...hello, stream })

      expect(text).toBe('too slow')
      await until(() => slow.running === 0, 500)
      expect(lines.filter(([level]) => level === 'error')).toEqual([])
    },
  )
})

describe('interceptors', () => {
  const intercepting = (intercept: (results: Observable<unknown>) => Observable<unknown>) => {
    const interceptor: NestInterceptor = {
      intercept: (_context: ExecutionContext, next: CallHandler) => intercept(next.handle()),
    }
    return { providers: [{ provide: APP_INTERCEPTOR, useValue: interceptor }] }
  }

  test('see complete answers as text, and streams as a StreamableFile', async () => {
    const seen: unknown[] = []
    const spy = intercepting(map((result) => seen.push(result) && result))
    const { server } = await serve([LlmModule.forRoot({ engine, models })], spy)

    const whole = await request(server).post(chat).send(hello)
    await request(server)
      .post(chat)
      .send({ ...hello, stream: true })

    expect(seen).toEqual([whole.text, expect.any(StreamableFile)])
  })

  test('stop the generation when they replace our stream', async () => {
    const slow = scriptedEngine(Array(1_000).fill('word '), { delayMs: 1 })
    const dropped: StreamableFile[] = []
    const other = intercepting(map((file) => dropped.push(file as StreamableFile) && { from: 'the app' }))
    const { server } = await serve([LlmModule.forRoot({ engine: slow, models })], other)

    const { text } = await request(server)
      .post(chat)
      .send({ ...hello, stream: true })

    expect(text).toBe('{"from":"the app"}')
    expect(slow.requests).toHaveLength(1)
    await until(() => slow.running === 0, 500)
    expect(dropped.map((file) => file.getStream().destroyed)).toEqual([true])
  })

  test('can answer without a call of the model', async () => {
    const silent = scriptedEngine('Hello there.')
    const cached: NestInterceptor = { intercept: () => of({ from: 'the cache' }) }
    const { server } = await serve([LlmModule.forRoot({ engine: silent, models })], {
      providers: [{ provide: APP_INTERCEPTOR, useValue: cached }],
    })

    const { body } = await request(server).post(chat).send(hello)

    expect(body).toEqual({ from: 'the cache' })
    expect(silent.requests).toEqual([])
  })
})

describe('paths', () => {
  test('routes have the global prefix and the path of the module in front, and Nest logs them', async () => {
    const { logger, lines } = recorder()
    const { server, url } = await serve(
      [LlmModule.forRoot({ engine, models, path: 'llm' })],
      {},
      { logger, prepare: (app) => void app.setGlobalPrefix('api') },
    )

    const slashes = await request(server).get('/api/llm/v1/models/a/b')

    expect(await contentOf(clientOf(`${url}/api/llm`))).toBe('Hello there.')
    expect(slashes.body.error.message).toBe('model "a/b" not found')
    expect(lines.map(([, message]) => message)).toEqual(
      expect.arrayContaining([
        'LlmController (ollama, openai, anthropic, modelmount) {/api/llm}:',
        'Mapped {/api/llm/v1/chat/completions, POST} route',
        'Mapped {/api/llm/v1/models, GET} route',
      ]),
    )
  })

  test('a wrong method is a 405 that names the path below the prefixes', async () => {
    const { server } = await serve(
      [LlmModule.forRoot({ engine, models, path: 'llm' })],
      {},
      { prepare: (app) => void app.setGlobalPrefix('api') },
    )

    const response = await request(server).put('/api/llm/v1/models/a/b').expect(405)

    expect(response.headers.allow).toBe('GET, HEAD, DELETE')
    expect(response.body.error.message).toBe(
      'PUT is not allowed on /v1/models/a/b. Allowed: GET, HEAD, DELETE.',
    )
  })

  test.each([
    ['at the root', '/v1/nope', {}],
    [
      'under a path with unknownRoutes: pass',
      '/llm/v1/nope',
      { path: 'llm', unknownRoutes: 'pass' as const },
    ],
  ])('%s, an unknown path is passed to the host app', async (_where, path, options) => {
    const { server } = await serve([LlmModule.forRoot({ engine, models, ...options })])

    const { body } = await request(server).get(path).expect(404)

    expect(body).toEqual({ statusCode: 404, message: `Cannot GET ${path}`, error: 'Not Found' })
  })

  test.each([
    ['under a path', '/llm/v1/nope', '/v1/nope', { path: 'llm' }],
    ['at the root with unknownRoutes: error', '/v1/nope', '/v1/nope', { unknownRoutes: 'error' as const }],
  ])('%s, the unknown path %s is answered in the dialect', async (_where, path, below, options) => {
    const { server } = await serve([LlmModule.forRoot({ engine, models, ...options })])

    const { body } = await request(server).get(path).expect(404)

    expect(body.error).toMatchObject({ message: `Invalid URL (GET ${below})`, code: null })
  })

  test.each([
    ['/llm', { path: 'llm' }],
    ['/llm/', { path: 'llm' }],
    ['/', { unknownRoutes: 'error' as const }],
  ])('the mount point, %s, answers with the greeting of Ollama', async (path, options) => {
    const { server } = await serve([LlmModule.forRoot({ engine, models, ...options })])

    const { text } = await request(server).get(path).expect(200)

    expect(text).toBe('Ollama is running')
  })

  test('the versioning of the app does not affect our paths', async () => {
    const { url } = await serve(
      [LlmModule.forRoot({ engine, models })],
      {},
      { prepare: (app) => void app.enableVersioning({ type: VersioningType.URI, defaultVersion: '2' }) },
    )

    expect(await contentOf(clientOf(url))).toBe('Hello there.')
  })
})

describe('bodies', () => {
  const large = JSON.stringify({ ...hello, user: 'x'.repeat(200_000) })

  test.each<[what: string, status: number, options: ServeOptions]>([
    ["is rejected by Nest's own parser", 413, {}],
    [
      'is accepted when the limit of that parser is raised',
      200,
      { prepare: (app) => void app.useBodyParser('json', { limit: '32mb' }) },
    ],
    ['is accepted with `bodyParser: false`', 200, { bodyParser: false }],
  ])('a body of 200 kB %s', async (_what, status, options) => {
    const { server } = await serve([LlmModule.forRoot({ engine, models })], {}, options)

    await request(server).post(chat).type('json').send(large).expect(status)
  })

  test('with `bodyParser: false`, bodyLimit applies', async () => {
    const modules = [LlmModule.forRoot({ engine, models, bodyLimit: '100kb' })]
    const { server } = await serve(modules, {}, { bodyParser: false })

    const { body } = await request(server).post(chat).type('json').send(large).expect(413)

    expect(body.error.code).toBe('request_too_large')
  })
})

describe('streams', () => {
  test('a stream arrives piece by piece, with our headers, and uncompressed', async () => {
    const { gated, open } = twoPieces()
    const { url } = await serve(
      [LlmModule.forRoot({ engine: gated, models })],
      {},
      { prepare: (app) => void app.use(compression()) },
    )

    const response = await stream(url, { 'accept-encoding': 'gzip' })
    // If frames were buffered, this would never end.
    const texts = await textsOf(response, (text) => text === 'Hello' && open())

    expect(texts).toEqual(['Hello', ' there.'])
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'x-request-id': expect.stringMatching(/^req_/),
    })
    expect(response.headers.get('content-encoding')).toBeNull()
  })
})

interface Served {
  readonly app: INestApplication
  readonly server: Parameters<typeof request>[0]
  readonly url: string
}

interface ServeOptions {
  readonly logger?: LoggerService
  readonly bodyParser?: boolean
  prepare?(app: NestExpressApplication): void
}

/** Starts an app with these modules, and closes it after the test. */
async function serve(
  imports: readonly (DynamicModule | Type)[],
  metadata: Omit<Parameters<typeof Module>[0], 'imports'> = {},
  { logger, bodyParser = true, prepare }: ServeOptions = {},
): Promise<Served> {
  @Module({ imports: [...imports], ...metadata })
  class AppModule {}

  const app = await NestFactory.create<NestExpressApplication>(AppModule, {
    logger: logger ?? false,
    bodyParser,
    abortOnError: false,
  })
  onTestFinished(() => app.close())
  prepare?.(app)
  await app.listen(0, '127.0.0.1')
  return { app, server: app.getHttpServer(), url: await app.getUrl() }
}

const clientOf = (url: string, apiKey = 'any'): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 })

async function contentOf(client: OpenAI): Promise<string | null | undefined> {
  const { choices } = await client.chat.completions.create(hello)
  return choices[0]?.message.content
}

const stream = (url: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(url + chat, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ ...hello, stream: true }),
  })

async function textsOf({ body }: Response, onText: (text: string) => void = () => {}): Promise<string[]> {
  const texts: string[] = []
  for await (const { data } of readEvents(body as ReadableStream<Uint8Array>)) {
    const text = data === '[DONE]' ? undefined : JSON.parse(data).choices[0].delta.content
    if (!text) continue
    texts.push(text)
    onText(text)
  }
  return texts
}

/** Returns an engine that emits one piece of text, and the second piece after `open()`. */
function twoPieces(): { gated: Engine; open: () => void } {
  const { opened, open } = gate()
  const gated: Engine = {
    ...engine,
    async *generate({ model }) {
      yield { type: 'start', model, inputTokens: 1, reusedTokens: 0, ...uncached, fingerprint: 'fp_gated' }
      yield { type: 'text', text: 'Hello', tokens: 1 }
      await opened
      yield { type: 'text', text: ' there.', tokens: 1 }
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

function gate(): { opened: Promise<void>; open: () => void } {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

/** Returns a logger for Nest that records its lines and prints nothing. */
function recorder(): { logger: LoggerService; lines: unknown[][] } {
  const lines: unknown[][] = []
  const at =
    (level: string) =>
    (...line: unknown[]) =>
      void lines.push([level, ...line])
  return { logger: { log: at('log'), error: at('error'), warn: at('warn') }, lines }
}
