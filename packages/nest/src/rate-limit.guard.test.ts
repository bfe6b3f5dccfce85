import { createRateLimiter, LlmError } from '@modelmount/core/limits'
import {
  Controller,
  Get,
  type HttpException,
  type INestApplication,
  Injectable,
  Module,
  Req,
  type Type,
  UseGuards,
} from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import request from 'supertest'
import { expect, onTestFinished, test } from 'vitest'
import { type LimitedRequest, type LlmRequest, RATE_LIMITER, RateLimit, RateLimitGuard } from './index.ts'

const clock = { now: 0 }
const limiter = {
  provide: RATE_LIMITER,
  useFactory: () =>
    createRateLimiter({ limits: { requestsPerMinute: 2, tokensPerMinute: 100 }, now: () => clock.now }),
}

@Controller()
class Pages {
  @Get('hello')
  @UseGuards(RateLimitGuard)
  hello() {
    return 'hello'
  }

  @Get('dear')
  @UseGuards(RateLimitGuard)
  @RateLimit({ requests: 0, tokens: ({ headers }) => Number(headers['x-words']) })
  dear() {
    return 'dear'
  }

  @Get('settled')
  @UseGuards(RateLimitGuard)
  @RateLimit({ tokens: 100 })
  async settled(@Req() { reservation }: LimitedRequest) {
    await reservation?.settle({ requests: 1, tokens: 60 })
    return 'settled'
  }

  @Get('free')
  free() {
    return 'free'
  }
}

async function serve(controller: Type, providers: readonly object[] = []) {
  class App {}
  Module({ controllers: [controller], providers: [limiter, ...providers] as never })(App)
  const app: INestApplication = await NestFactory.create(App, { logger: false, abortOnError: false })
  await app.init()
  onTestFinished(() => app.close())
  return (path: string, headers: Record<string, string> = {}) =>
    request(app.getHttpServer()).get(path).set(headers)
}

test('a route answers within its limit, and its headers report the limit', async () => {
  const get = await serve(Pages)

  const responses = [await get('/hello'), await get('/hello'), await get('/hello')]

  expect(responses.map(({ status }) => status)).toEqual([200, 200, 429])
  expect(responses[0]?.headers).toMatchObject({
    'x-ratelimit-limit-requests': '2',
    'x-ratelimit-remaining-requests': '1',
  })
  expect(responses[2]?.headers).toMatchObject({ 'retry-after': '30', 'retry-after-ms': '30000' })
  expect(responses[2]?.body).toEqual({
    statusCode: 429,
    message: 'This request would exceed the limit of 2 requests per minute. Try again in 30 s.',
    error: 'Too Many Requests',
  })
  expect((await get('/free')).status).toBe(200)
})

test('the cost of a route can be a function of the request', async () => {
  const get = await serve(Pages)

  expect((await get('/dear', { 'x-words': '70' })).status).toBe(200)
  expect((await get('/dear', { 'x-words': '70' })).status).toBe(429)
  expect((await get('/dear', { 'x-words': '30' })).status).toBe(200)
})

test('a route settles its actual cost', async () => {
  const get = await serve(Pages)
  await get('/settled')

  const { headers } = await get('/hello')

  expect(headers['x-ratelimit-remaining-tokens']).toBe('40')
})

test('a subclass of the guard overrides the rate limit key and the exception', async () => {
  @Injectable()
  class ByUser extends RateLimitGuard {
    protected override keyGenerator({ headers }: LlmRequest) {
      return `user:${headers['x-user']}`
    }
    protected override refusal(): HttpException {
      return super.refusal(new LlmError('rate_limit', 'slower, please'))
    }
  }
  @Controller()
  @RateLimit({ requests: 2 })
  class Home {
    @Get()
    home() {
      return 'home'
    }
  }
  const get = await serve(Home, [{ provide: APP_GUARD, useClass: ByUser }])

  const [ann, again, bob] = [
    await get('/', { 'x-user': 'ann' }),
    await get('/', { 'x-user': 'ann' }),
    await get('/', { 'x-user': 'bob' }),
  ]

  expect([ann.status, again.status, bob.status]).toEqual([200, 429, 200])
  expect(again.body.message).toBe('slower, please')
})

test('an error of keyGenerator becomes a Nest exception with the same status', async () => {
  @Injectable()
  class ByKey extends RateLimitGuard {
    protected override keyGenerator(): never {
      throw new LlmError('authentication', 'No API key is given.')
    }
  }
  const get = await serve(Pages, [{ provide: APP_GUARD, useClass: ByKey }])

  const { status, body } = await get('/free')

  expect([status, body]).toEqual([
    401,
    { statusCode: 401, message: 'No API key is given.', error: 'Unauthorized' },
  ])
})

test('the decorator throws a TypeError for an unknown option', () => {
  expect(() => RateLimit({ subject: () => 'ann' } as never)).toThrow('Unknown option `subject`')
})

test('an override of the old method name stops the start of the app', async () => {
  @Injectable()
  class ByUser extends RateLimitGuard {
    protected subject({ headers }: LlmRequest) {
      return `user:${headers['x-user']}`
    }
  }

  await expect(serve(Pages, [{ provide: APP_GUARD, useClass: ByUser }])).rejects.toThrow(
    'Expected ByUser to override keyGenerator(), got subject()',
  )
})

test('a field with the old method name makes requests fail instead of counting by address', async () => {
  @Injectable()
  class ByUser extends RateLimitGuard {
    readonly subject = () => 'user:ann'
  }
  const get = await serve(Pages, [{ provide: APP_GUARD, useClass: ByUser }])

  expect((await get('/free')).status).toBe(500)
})

test('the options of express-rate-limit work in the decorator', async () => {
  @Controller()
  @UseGuards(RateLimitGuard)
  class Home {
    @Get()
    @RateLimit({ limit: 1, windowMs: 900_000, skip: ({ headers }) => headers['x-health'] === '1' })
    home() {
      return 'home'
    }
  }
  const get = await serve(Home)

  const responses = [await get('/'), await get('/'), await get('/', { 'x-health': '1' })]

  expect(responses.map(({ status }) => status)).toEqual([200, 429, 200])
  expect(responses[0]?.headers).toMatchObject({
    ratelimit: '"1-in-15min"; r=0; t=900',
    'ratelimit-policy': '"1-in-15min"; q=1; w=900',
  })
})
