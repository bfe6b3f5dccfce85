/** A logger of the host app threw, and the error that it should have logged cut the streams of clients. */
import { channel } from 'node:diagnostics_channel'
import { type Caller, createLlm, type Llm, LlmError, type LlmOptions, routesFor } from '@modelmount/core'
import { toFetchHandler } from '@modelmount/core/http'
import { createRateLimiter } from '@modelmount/core/limits'
import { scriptedEngine } from '@modelmount/core/testing'
import { rateLimit } from '@modelmount/express'
import express4 from 'express4'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { listen } from '../../support/listen.ts'

const crash = new LlmError('upstream', 'The model process has ended unexpectedly (SIGSEGV).')
const fail = (): never => {
  throw new Error('The logger failed.')
}
const rejectAll = async (): Promise<never> => fail()
/** Calls `onError`, then fails. A spy would handle the rejection, so the methods are none. */
const loggers = {
  throws: (onError: () => void) => ({
    debug: fail,
    warn: fail,
    error: () => {
      onError()
      fail()
    },
  }),
  rejects: (onError: () => void) => ({
    debug: rejectAll,
    warn: rejectAll,
    error: () => {
      onError()
      return rejectAll()
    },
  }),
}

const unhandled = vi.fn()
beforeEach(() => void process.on('unhandledRejection', unhandled))
afterEach(() => {
  process.removeListener('unhandledRejection', unhandled)
  unhandled.mockReset()
})
/** Node reports an unhandled rejection after the microtasks of its tick. */
const expectHandled = async (): Promise<void> => {
  await new Promise((resolve) => setImmediate(resolve))
  expect(unhandled).not.toHaveBeenCalled()
}

async function start(options: LlmOptions): Promise<Llm> {
  const llm = await createLlm(options)
  onTestFinished(() => llm.close())
  return llm
}

const requests = {
  '/v1/chat/completions': ['"type":"server_error"', {}],
  '/v1/messages': ['"type":"api_error"', { max_tokens: 100 }],
  '/api/chat': ['{"error":"The model process', {}],
} as const
const cases = Object.keys(loggers).flatMap((how) =>
  Object.keys(requests).map((path) => [how as keyof typeof loggers, path as keyof typeof requests] as const),
)

test.each(cases)('a logger that %s does not cut a failed stream of %s', async (how, path) => {
  const onError = vi.fn()
  const logger = loggers[how](onError)
  const llm = await start({ engine: scriptedEngine(['Hello', crash]), logger })
  const handle = toFetchHandler(routesFor(), llm, { remoteAddress: () => '127.0.0.1' })
  const [frame, more] = requests[path]

  const response = await handle(
    new Request(`http://localhost${path}`, {
      method: 'POST',
      headers: { 'anthropic-version': '2023-06-01' },
      body: JSON.stringify({
        model: 'any',
        messages: [{ role: 'user', content: 'Hi' }],
        stream: true,
        ...more,
      }),
    }),
  )
  const text = await response.text()

  expect(response.status).toBe(200)
  expect(text).toContain('Hello')
  expect(text).toContain(frame)
  expect(onError).toHaveBeenCalledOnce()
  await expectHandled()
})

test.each(['throws', 'rejects'] as const)(
  'a logger that %s does not replace the error of a call',
  async (how) => {
    const llm = await start({ engine: scriptedEngine(crash), logger: loggers[how](() => {}) })
    const handle = toFetchHandler(routesFor(), llm, { remoteAddress: () => '127.0.0.1' })

    const response = await handle(
      new Request('http://localhost/v1/chat/completions', {
        method: 'POST',
        body: JSON.stringify({ model: 'any', messages: [{ role: 'user', content: 'Hi' }] }),
      }),
    )

    expect(response.status).toBe(500)
    expect(await response.json()).toMatchObject({ error: { message: crash.message } })
    await expectHandled()
  },
)

const price = { inputPerMillionUsd: 1_000, outputPerMillionUsd: 1_000 }
const spender: Caller = { id: 'ann', spendingLimit: { usd: 0.01, period: 'day' } }

test.each([
  ['throws', fail],
  ['rejects', async () => fail()],
])('an `onWarning` that %s ends no call, and the log names it', async (_, onWarning) => {
  const error = vi.fn()
  const logger = { warn: vi.fn(), error }
  const llm = await start({
    engine: scriptedEngine('Hello'),
    database: ':memory:',
    prices: { '*': price },
    spendingWarnings: { thresholds: [0.01], onWarning },
    logger,
  })

  const answer = await llm.chat('Hi', { caller: spender, maxTokens: 5 })

  expect(answer.text).toBe('Hello')
  await vi.waitFor(() =>
    expect(error).toHaveBeenCalledWith(
      { err: expect.objectContaining({ cause: new Error('The logger failed.') }) },
      'The option `spendingWarnings.onWarning` failed.',
    ),
  )
  await expectHandled()
})

test('an `onWarning` that never settles delays no call', async () => {
  const llm = await start({
    engine: scriptedEngine('Hello'),
    database: ':memory:',
    prices: { '*': price },
    spendingWarnings: { thresholds: [0.01], onWarning: () => new Promise(() => {}) },
  })
  const warned = vi.fn()
  channel('modelmount:spending').subscribe(warned)
  onTestFinished(() => void channel('modelmount:spending').unsubscribe(warned))

  const answer = await llm.chat('Hi', { caller: spender, maxTokens: 5 })

  expect(answer.text).toBe('Hello')
  expect(warned).toHaveBeenCalledOnce()
})

test.each([
  ['throws', fail],
  ['rejects', async () => fail()],
  ['resolves with false', async () => false],
])('a `passOnStoreError` that %s rejects the request with 503', async (_, passOnStoreError) => {
  const broken = { reserve: () => Promise.reject(new Error('away')), status: async () => [] }
  const app = express4().get(
    '/',
    rateLimit(broken, { passOnStoreError }),
    (_req, res) => void res.send('hello'),
  )
  const server = await listen(app)
  onTestFinished(() => server.close())

  const response = await fetch(server.url)

  expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5'])
  await expectHandled()
})

test('a `handler` of a rate limit that rejects reaches the error handler of Express 4', async () => {
  const limiter = await createRateLimiter({ limits: { requestsPerMinute: 1 } })
  const app = express4()
    .get('/', rateLimit(limiter, { handler: async () => fail() }), (_req, res) => void res.send('hello'))
    .use(
      ((error, _req, res, _next) => void res.status(418).send(error.message)) as express4.ErrorRequestHandler,
    )
  const server = await listen(app)
  onTestFinished(() => server.close())

  await (await fetch(server.url)).text()
  const response = await fetch(server.url, { signal: AbortSignal.timeout(2_000) })

  expect([response.status, await response.text()]).toEqual([418, 'The logger failed.'])
  await expectHandled()
})
