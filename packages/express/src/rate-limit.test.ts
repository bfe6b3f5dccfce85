import { createRateLimiter, LlmError, type RateLimiter } from '@modelmount/core/limits'
import express5, { type Response } from 'express'
import { rateLimit as expressRateLimit } from 'express-rate-limit'
import express4 from 'express4'
import request from 'supertest'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { until } from '../../../test/support/processes.ts'
import { rateLimit } from './rate-limit.ts'

describe.each([
  [4, express4],
  [5, express5],
])('Express %i', (_version, express) => {
  let limiter: RateLimiter
  const clock = { now: 0 }

  beforeEach(async () => {
    limiter = await createRateLimiter({
      limits: { requestsPerMinute: 2, tokensPerMinute: 1_000 },
      now: () => clock.now,
    })
  })

  const hello = (_req: unknown, res: Response) => void res.send('hello')

  test('a route answers within its limit, and its headers report the limit', async () => {
    const app = express().get('/hello', rateLimit(limiter, { tokens: 100 }), hello)

    const responses = [
      await request(app).get('/hello'),
      await request(app).get('/hello'),
      await request(app).get('/hello'),
    ]

    expect(responses.map(({ status }) => status)).toEqual([200, 200, 429])
    expect(responses[0]?.headers).toMatchObject({
      'x-ratelimit-limit-requests': '2',
      'x-ratelimit-remaining-requests': '1',
      'x-ratelimit-remaining-tokens': '900',
    })
    expect(responses[2]?.headers).toMatchObject({ 'retry-after': '30', 'retry-after-ms': '30000' })
    expect(responses[2]?.body).toEqual({
      error: 'This request would exceed the limit of 2 requests per minute. Try again in 30 s.',
    })
  })

  test('other routes are not limited', async () => {
    const app = express()
      .get('/limited', rateLimit(limiter, { requests: 2 }), hello)
      .get('/free', hello)

    const statuses = [
      await request(app).get('/limited'),
      await request(app).get('/limited'),
      await request(app).get('/free'),
    ]

    expect(statuses.map(({ status }) => status)).toEqual([200, 429, 200])
  })

  test('behind a trusted proxy, the address is the one that Express reports', async () => {
    const app = express()
      .set('trust proxy', 1)
      .get('/hello', rateLimit(limiter, { requests: 2 }), hello)
    const from = (address: string) => request(app).get('/hello').set('x-forwarded-for', address)

    expect((await from('2001:db8::1')).status).toBe(200)
    expect((await from('2001:db8::2')).status).toBe(429)
    expect((await from('2001:db8:0:1::1')).status).toBe(200)
  })

  test('a handler of the app answers rejected requests', async () => {
    const app = express().get(
      '/hello',
      rateLimit(limiter, {
        requests: 2,
        handler: (_req, res, _next, { details }) =>
          void res.status(503).send(`in ${details.retryAfterMs} ms`),
      }),
      hello,
    )

    await request(app).get('/hello')
    const { status, text, headers } = await request(app).get('/hello')

    expect([status, text, headers['retry-after']]).toEqual([503, 'in 60000 ms', '60'])
  })

  test('a handler of the app can pass the error to its error handler', async () => {
    const app = express()
      .get(
        '/hello',
        rateLimit(limiter, { requests: 2, handler: (_req, _res, next, error) => next(error) }),
        hello,
      )
      .use(
        ((error, _req, res, _next) => void res.status(418).send(error.code)) as express5.ErrorRequestHandler,
      )

    await request(app).get('/hello')
    const { status, text } = await request(app).get('/hello')

    expect([status, text]).toEqual([418, 'rate_limit'])
  })

  test('a route settles its actual cost', async () => {
    const app = express().get(
      '/hello',
      rateLimit(limiter, { requests: 0, tokens: 500 }),
      async (_req, res) => {
        await res.locals.reservation.settle({ requests: 0, tokens: 10 })
        res.send('hello')
      },
    )

    await request(app).get('/hello')
    const { headers } = await request(app).get('/hello')

    expect(headers['x-ratelimit-remaining-tokens']).toBe('490')
    const { limits } = await limiter.reserve([{ id: 'ip:127.0.0.1' }], { requests: 0, tokens: 0 })
    expect(limits).toMatchObject([{}, { remaining: 980 }])
  })

  test('a call counts as running until its response is over or its client disconnects', async () => {
    const limits = { concurrent: 1 }
    const pending: Response[] = []
    const app = express().get(
      '/hello',
      rateLimit(limiter, { name: 'export', limits }),
      (_req, res) => void pending.push(res),
    )
    const server = app.listen(0, '127.0.0.1')
    try {
      await until(() => server.listening, 1_000)
      const first = request(server)
        .get('/hello')
        .then(({ status }) => status)
      await until(() => pending.length === 1, 1_000)
      const second = await request(server).get('/hello')
      pending[0]?.send('done')

      expect([await first, second.status]).toEqual([200, 429])
      const aborted = request(server).get('/hello')
      aborted.catch(() => {})
      aborted.end(() => {})
      await until(() => pending.length === 2, 1_000)
      aborted.abort()
      await expect
        .poll(async () =>
          limiter.reserve([{ id: 'export ip:127.0.0.1', limits }], { requests: 0, tokens: 0 }).then(
            () => true,
            () => false,
          ),
        )
        .toBe(true)
    } finally {
      server.close()
      server.closeAllConnections()
    }
  })

  test.each([
    [new LlmError('authentication', 'No API key is given.'), 401],
    [new LlmError('permission', 'Not you.'), 403],
  ])('an error of keyGenerator rejects the request: %s', async (error, status) => {
    const app = express().get(
      '/hello',
      rateLimit(limiter, { keyGenerator: () => Promise.reject(error) }),
      hello,
    )

    const response = await request(app).get('/hello')

    expect([response.status, response.body]).toEqual([status, { error: error.message }])
  })

  test('Express answers an LlmError of the app with its status', async () => {
    const handler = rateLimit(limiter, { requests: 2, handler: (_req, _res, next, error) => next(error) })
    const app = express().set('env', 'test').get('/hello', handler, hello)

    await request(app).get('/hello')

    expect((await request(app).get('/hello')).status).toBe(429)
  })

  test.each([
    { limit: 2, windowMs: 60_000 },
    { limit: 100, windowMs: 900_000 },
    { limit: 3, windowMs: 30_000 },
    { limit: 5, windowMs: 7_200_000 },
    { limit: 1, windowMs: 86_400_000 },
  ])('the standard headers equal those of express-rate-limit: %j', async (options) => {
    vi.useFakeTimers({ toFake: ['Date'] }) // The headers count seconds from the first request, which is not the same one.
    onTestFinished(() => void vi.useRealTimers())
    const theirs = expressRateLimit({ ...options, standardHeaders: 'draft-8', legacyHeaders: false })
    const app = express()
      .get('/ours', rateLimit(limiter, { ...options, requests: options.limit }), hello)
      .get('/theirs', theirs, hello)
    const [policy, state] = [/^"(.+)"; q=(\d+); w=(\d+)(?:; pk=:.+:)?$/, /^"(.+)"; r=(\d+); t=(\d+)$/]
    const parse = async (path: string, header: string, pattern: RegExp) =>
      pattern.exec(String((await request(app).get(path)).headers[header]))?.slice(1)
    for (let call = 1; call < options.limit; call++) await request(app).get('/theirs')

    expect(await parse('/ours', 'ratelimit', state)).toEqual(await parse('/theirs', 'ratelimit', state))
    expect(await parse('/ours', 'ratelimit-policy', policy)).toEqual(
      await parse('/theirs', 'ratelimit-policy', policy),
    )
    expect(await parse('/ours', 'ratelimit', state)).toEqual(await parse('/theirs', 'ratelimit', state))
  })

  test('a failing limiter answers 503, or admits the request with passOnStoreError', async () => {
    const broken: RateLimiter = { reserve: () => Promise.reject(new Error('away')), status: async () => [] }
    const app = express()
      .get('/refused', rateLimit(broken), hello)
      .get('/admitted', rateLimit(broken, { passOnStoreError: true }), hello)

    const refused = await request(app).get('/refused')

    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '5'])
    expect(refused.text).not.toContain('away')
    expect((await request(app).get('/admitted')).text).toBe('hello')
  })

  test('other errors go to the error handler of the app', async () => {
    const keyGenerator = () => Promise.reject(new Error('no such user'))
    const app = express()
      .get('/hello', rateLimit(limiter, { keyGenerator }), hello)
      .use(
        ((error, _req, res, _next) =>
          void res.status(500).send(error.message)) as express5.ErrorRequestHandler,
      )

    expect((await request(app).get('/hello')).text).toBe('no such user')
  })
})
