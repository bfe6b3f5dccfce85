import { createRateLimiter, LlmError, type RateLimiter } from '@modelmount/core/limits'
import fastify, { type FastifyInstance, type FastifyRequest, type FastifyServerOptions } from 'fastify'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { until } from '../../../test/support/processes.ts'
import { type RateLimitOptions, rateLimit } from './rate-limit.ts'

let limiter: RateLimiter
const clock = { now: 0 }

beforeEach(async () => {
  limiter = await createRateLimiter({ limits: { requestsPerMinute: 2 }, now: () => clock.now })
})

/** Creates an app with a limited route and one without limits. */
function appOf(
  options: RateLimitOptions = {},
  answer: (request: FastifyRequest) => unknown = () => 'hello',
  server: FastifyServerOptions = {},
): FastifyInstance {
  const app: FastifyInstance = fastify({ forceCloseConnections: true, ...server })
  onTestFinished(() => app.close())
  app.get('/', { onRequest: rateLimit(limiter, options) }, async (request) => answer(request))
  app.get('/free', async () => 'hello')
  return app
}

test('a route answers within its limit, and its headers report the limit', async () => {
  const app = appOf()

  const responses = [await app.inject('/'), await app.inject('/'), await app.inject('/')]

  expect(responses.map(({ statusCode }) => statusCode)).toEqual([200, 200, 429])
  expect(responses[0]?.headers).toMatchObject({
    'x-ratelimit-limit-requests': '2',
    'x-ratelimit-remaining-requests': '1',
  })
  expect(responses[2]?.headers).toMatchObject({ 'retry-after': '30', 'retry-after-ms': '30000' })
  expect(responses[2]?.json()).toEqual({
    error: 'This request would exceed the limit of 2 requests per minute. Try again in 30 s.',
  })
  expect((await app.inject('/free')).statusCode).toBe(200)
})

test('behind a trusted proxy, the address is the one that it reports, whatever the client writes', async () => {
  const app = appOf({ requests: 2 }, undefined, { trustProxy: '127.0.0.1' })
  // The proxy appends the address of its client.
  const from = async (forwarded: string) =>
    (await app.inject({ url: '/', headers: { 'x-forwarded-for': forwarded } })).statusCode

  expect(await from('198.51.100.1, ::ffff:192.0.2.1')).toBe(200)
  expect(await from('198.51.100.2, 192.0.2.1')).toBe(429)
  expect(await from('192.0.2.2')).toBe(200)
})

test('an error of keyGenerator rejects the request with its status', async () => {
  const app = appOf({ keyGenerator: () => Promise.reject(new LlmError('authentication', 'No API key.')) })

  const response = await app.inject('/')

  expect([response.statusCode, response.json()]).toEqual([401, { error: 'No API key.' }])
})

test('other errors go to the error handler of the app', async () => {
  const app = appOf({ keyGenerator: () => Promise.reject(new Error('no such user')) })
  app.setErrorHandler((error: Error, _request, reply) => reply.code(418).send(error.message))

  const response = await app.inject('/')

  expect([response.statusCode, response.body]).toEqual([418, 'no such user'])
})

test('a handler of the app answers rejected requests', async () => {
  const app = appOf({ requests: 2, handler: (_request, reply) => reply.code(503).send('my own words') })

  await app.inject('/')
  const { statusCode, body, headers } = await app.inject('/')

  expect([statusCode, body, headers['retry-after']]).toEqual([503, 'my own words', '60'])
})

test('a route settles its actual cost', async () => {
  const app = appOf({ requests: 2 }, async ({ reservation }) => {
    await reservation?.settle({ requests: 1, tokens: 0 })
    return 'hello'
  })

  await app.inject('/')

  const { limits } = await limiter.reserve([{ id: 'ip:127.0.0.1' }], { requests: 0, tokens: 0 })
  expect(limits).toMatchObject([{ remaining: 1 }])
})

test('a call counts as running until its response is over', async () => {
  const pending: (() => void)[] = []
  const app = appOf({ name: 'export', limits: { concurrent: 1 } }, async () => {
    await new Promise<void>((resolve) => pending.push(resolve))
    return 'done'
  })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })

  const first = fetch(url)
  await until(() => pending.length === 1, 1_000)
  const second = await fetch(url)
  pending[0]?.()

  expect([(await first).status, second.status]).toEqual([200, 429])
  await (await first).text()
  const third = fetch(url)
  await until(() => pending.length === 2, 1_000)
  pending[1]?.()
  expect((await third).status).toBe(200)
})

test('the options and headers of express-rate-limit work', async () => {
  const skip = ({ headers }: FastifyRequest) => headers['x-health'] === '1'
  const app = appOf({ limit: 1, windowMs: 900_000, skip })

  const responses = [
    await app.inject('/'),
    await app.inject('/'),
    await app.inject({ url: '/', headers: { 'x-health': '1' } }),
  ]

  expect(responses.map(({ statusCode }) => statusCode)).toEqual([200, 429, 200])
  expect(responses[0]?.headers).toMatchObject({
    ratelimit: '"1-in-15min"; r=0; t=900',
    'ratelimit-policy': '"1-in-15min"; q=1; w=900',
  })
})
