import { Router } from '@koa/router'
import { createRateLimiter, LlmError, type RateLimiter } from '@modelmount/core/limits'
import Koa, { type Context } from 'koa'
import request from 'supertest'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { listen } from '../../../test/support/listen.ts'
import { until } from '../../../test/support/processes.ts'
import { rateLimit } from './rate-limit.ts'

let limiter: RateLimiter
const clock = { now: 0 }

beforeEach(async () => {
  limiter = await createRateLimiter({ limits: { requestsPerMinute: 2 }, now: () => clock.now })
})

const appOf = (...middleware: readonly Koa.Middleware[]) =>
  middleware.reduce((app, one) => app.use(one), new Koa())
const hello: Koa.Middleware = (ctx) => {
  ctx.body = 'hello'
}

test('a route answers within its limit, and its headers report the limit', async () => {
  const router = new Router().get('/hello', rateLimit(limiter), hello).get('/free', hello)
  const app = new Koa().use(router.routes()).callback()

  const responses = [
    await request(app).get('/hello'),
    await request(app).get('/hello'),
    await request(app).get('/hello'),
  ]

  expect(responses.map(({ status }) => status)).toEqual([200, 200, 429])
  expect(responses[0]?.headers).toMatchObject({
    'x-ratelimit-limit-requests': '2',
    'x-ratelimit-remaining-requests': '1',
  })
  expect(responses[2]?.headers).toMatchObject({ 'retry-after': '30', 'retry-after-ms': '30000' })
  expect(responses[2]?.body).toEqual({
    error: 'This request would exceed the limit of 2 requests per minute. Try again in 30 s.',
  })
  expect((await request(app).get('/free')).status).toBe(200)
})

test('behind a trusted proxy, the address is the one that Koa reports', async () => {
  const app = appOf(rateLimit(limiter, { requests: 2 }), hello)
  app.proxy = true
  const from = (address: string) => request(app.callback()).get('/').set('x-forwarded-for', address)

  expect((await from('::ffff:192.0.2.1')).status).toBe(200)
  expect((await from('192.0.2.1')).status).toBe(429)
  expect((await from('192.0.2.2')).status).toBe(200)
})

test('behind one proxy, a client cannot avoid its limit by writing the header itself', async () => {
  const app = appOf(rateLimit(limiter, { requests: 2 }), hello)
  Object.assign(app, { proxy: true, maxIpsCount: 1 })
  // The proxy appends the address of its client.
  const from = (invented: string) =>
    request(app.callback()).get('/').set('x-forwarded-for', `${invented}, 192.0.2.1`)

  expect((await from('198.51.100.1')).status).toBe(200)
  expect((await from('198.51.100.2')).status).toBe(429)
})

test('an error of keyGenerator rejects the request, with the status that Koa gives an error of a route', async () => {
  const error = new LlmError('authentication', 'No API key is given.')
  const limited = appOf(rateLimit(limiter, { keyGenerator: () => Promise.reject(error) }), hello)
  const thrown = appOf(() => Promise.reject(error))
  thrown.silent = true

  const [ours, theirs] = [
    await request(limited.callback()).get('/'),
    await request(thrown.callback()).get('/'),
  ]

  expect([ours.status, ours.body]).toEqual([401, { error: 'No API key is given.' }])
  expect([theirs.status, theirs.text]).toEqual([401, 'No API key is given.'])
})

test('a handler of the app answers rejected requests', async () => {
  const handler = (ctx: Context) => {
    ctx.status = 503
    ctx.body = 'my own words'
  }
  const app = appOf(rateLimit(limiter, { requests: 2, handler }), hello).callback()

  await request(app).get('/')
  const { status, text, headers } = await request(app).get('/')

  expect([status, text, headers['retry-after']]).toEqual([503, 'my own words', '60'])
})

test('a route settles its actual cost', async () => {
  const app = appOf(rateLimit(limiter, { requests: 2 }), async (ctx) => {
    await ctx.state.reservation.settle({ requests: 1, tokens: 0 })
    ctx.body = 'hello'
  }).callback()

  await request(app).get('/')

  const { limits } = await limiter.reserve([{ id: 'ip:127.0.0.1' }], { requests: 0, tokens: 0 })
  expect(limits).toMatchObject([{ remaining: 1 }])
})

test('a call counts as running until its response is over', async () => {
  const limits = { concurrent: 1 }
  const pending: (() => void)[] = []
  const app = appOf(rateLimit(limiter, { name: 'export', limits }), async (ctx) => {
    await new Promise<void>((resolve) => pending.push(resolve))
    ctx.body = 'done'
  })
  const { url, close } = await listen(app.callback())
  onTestFinished(close)

  const first = fetch(url)
  await until(() => pending.length === 1, 1_000)
  const second = await fetch(url)
  pending[0]?.()

  expect([(await first).status, second.status]).toEqual([200, 429])
  await (await first).text()
  await expect
    .poll(() =>
      limiter.reserve([{ id: 'export ip:127.0.0.1', limits }], { requests: 0, tokens: 0 }).then(
        () => true,
        () => false,
      ),
    )
    .toBe(true)
})

test('other errors go to the error handler of the app', async () => {
  const app = appOf(
    async (ctx, next) =>
      next().catch((error: Error) => {
        ctx.body = error.message
      }),
    rateLimit(limiter, { keyGenerator: () => Promise.reject(new Error('no such user')) }),
    hello,
  ).callback()

  expect((await request(app).get('/')).text).toBe('no such user')
})

test('the options and headers of express-rate-limit work', async () => {
  const skip = (ctx: Context) => ctx.get('x-health') === '1'
  const app = appOf(rateLimit(limiter, { limit: 1, windowMs: 900_000, skip }), hello).callback()

  const responses = [
    await request(app).get('/'),
    await request(app).get('/'),
    await request(app).get('/').set('x-health', '1'),
  ]

  expect(responses.map(({ status }) => status)).toEqual([200, 429, 200])
  expect(responses[0]?.headers).toMatchObject({
    ratelimit: '"1-in-15min"; r=0; t=900',
    'ratelimit-policy': '"1-in-15min"; q=1; w=900',
  })
})
