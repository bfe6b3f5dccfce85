/** Rate limits, spending limits and full queues: the headers and errors of each API. */
import type { Caller } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { expect, vi } from 'vitest'
import { type ClientApi, greeting, hello, json, soon } from './calls.ts'
import type { RequirementId } from './requirements.ts'
import type { Check } from './suite.ts'

type LimitName = 'requests' | 'tokens'

/** Requests, rate limit headers and errors of a dialect. */
interface DialectCase {
  readonly path: string
  readonly body: object
  /** Requests to the other inference routes. */
  readonly others: readonly Pick<DialectCase, 'path' | 'body'>[]
  /** Requests that cost nothing, so that a key at its spending limit may send them. */
  readonly free: readonly (string | Pick<DialectCase, 'path' | 'body'>)[]
  readonly headers: (name: LimitName) => {
    readonly limit: string
    readonly remaining: string
    readonly reset: string
  }
  /** Parses the reset header and returns the time until the limit is full again, in ms. */
  readonly untilFull: (reset: string) => number
  readonly refused: (name: LimitName | 'concurrent', message: unknown) => object
  readonly spent: { readonly status: number; readonly body: (message: string) => object }
  readonly busy: { readonly status: number; readonly body: object }
}

const usualHeaders: DialectCase['headers'] = (name) => ({
  limit: `x-ratelimit-limit-${name}`,
  remaining: `x-ratelimit-remaining-${name}`,
  reset: `x-ratelimit-reset-${name}`,
})

/** Parses a duration in Go's format, such as `12ms`, `1s` or `6m0s`, to ms. */
function durationOf(reset: string): number {
  const [, milliseconds, minutes = 0, seconds] = /^(?:(\d+)ms|(?:(\d+)m)?(\d+(?:\.\d+)?)s)$/.exec(reset) ?? []
  return milliseconds ? Number(milliseconds) : Number(minutes) * 60_000 + Number(seconds) * 1_000
}

const message = expect.stringMatching(/./)
const anthropicError = (type: string, text: unknown, details?: object) => ({
  type: 'error',
  error: { type, message: text, ...(details && { details }) },
  request_id: expect.stringMatching(/^req_.+/),
})
const openaiError = (type: string, code: string, text: unknown) => ({
  error: { message: text, type, param: null, code },
})

const dialects: Readonly<Record<ClientApi, DialectCase>> = {
  ollama: {
    path: '/api/chat',
    body: hello,
    others: [
      { path: '/api/generate', body: { model: 'tiny', prompt: 'Hello' } },
      { path: '/api/embed', body: { model: 'tiny', input: 'Hello' } },
      { path: '/api/embeddings', body: { model: 'tiny', prompt: 'Hello' } },
    ],
    free: ['/api/tags', '/api/ps', '/api/version', { path: '/api/show', body: { model: 'tiny' } }],
    headers: usualHeaders,
    untilFull: durationOf,
    refused: (_name, text) => ({ error: text }),
    spent: { status: 429, body: (text) => ({ error: text }) },
    busy: { status: 503, body: { error: message } },
  },
  openai: {
    path: '/v1/chat/completions',
    body: hello,
    others: [
      { path: '/v1/completions', body: { model: 'tiny', prompt: 'Hello' } },
      { path: '/v1/responses', body: { model: 'tiny', input: 'Hello' } },
      { path: '/v1/embeddings', body: { model: 'tiny', input: 'Hello' } },
    ],
    free: ['/v1/models', '/v1/models/tiny'],
    headers: usualHeaders,
    untilFull: durationOf,
    refused: (name, text) =>
      openaiError(name === 'concurrent' ? 'requests' : name, 'rate_limit_exceeded', text),
    spent: { status: 429, body: (text) => openaiError('insufficient_quota', 'insufficient_quota', text) },
    busy: { status: 503, body: openaiError('server_error', 'server_overloaded', message) },
  },
  anthropic: {
    path: '/v1/messages',
    body: greeting,
    others: [],
    free: ['/v1/models', '/v1/models/tiny', { path: '/v1/messages/count_tokens', body: hello }],
    headers: (name) => ({
      limit: `anthropic-ratelimit-${name}-limit`,
      remaining: `anthropic-ratelimit-${name}-remaining`,
      reset: `anthropic-ratelimit-${name}-reset`,
    }),
    untilFull: (reset) => {
      expect(reset).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
      return Date.parse(reset) - Date.now()
    },
    refused: (_name, text) => anthropicError('rate_limit_error', text),
    spent: {
      status: 400,
      body: (text) =>
        anthropicError('invalid_request_error', `You have reached your specified API usage limits. ${text}`, {
          error_code: 'api_key_spend_limit_reached',
        }),
    },
    busy: { status: 529, body: anthropicError('overloaded_error', message) },
  },
}

const post = (url: string, { path, body }: Pick<DialectCase, 'path' | 'body'>, headers: object = {}) =>
  fetch(url + path, { method: 'POST', headers: { ...json, ...headers }, body: JSON.stringify(body) })

const limitedTo = (limits: Caller['limits']) => ({ caller: (): Caller => ({ id: 'ada', limits }) })

const onEveryAnswer =
  (dialect: DialectCase): Check =>
  async (serve) => {
    const url = await serve(
      scriptedEngine('Hello there.'),
      limitedTo({ requestsPerMinute: 60, tokensPerMinute: 60_000 }),
    )
    const { body } = dialect
    const asked = [dialect, { ...dialect, body: { ...body, stream: true } }, ...dialect.others]

    let left = 60
    for (const call of asked) {
      const response = await post(url, call)
      const header = (name: LimitName, what: 'limit' | 'remaining' | 'reset'): string =>
        String(response.headers.get(dialect.headers(name)[what]))

      expect([call.path, response.status]).toEqual([call.path, 200])
      expect([header('requests', 'limit'), header('tokens', 'limit')]).toEqual(['60', '60000'])
      expect(Number(header('requests', 'remaining'))).toBe(--left)
      expect(Number(header('tokens', 'remaining'))).toBeLessThan(60_000)
      expect(header('tokens', 'remaining')).toMatch(/^\d+$/)
      // Each request adds 1 s. The bounds allow for slow answers and for timestamps in whole seconds.
      const untilFull = dialect.untilFull(header('requests', 'reset'))
      expect(untilFull).toBeGreaterThan((60 - left - 1) * 1_000 - 1_000)
      expect(untilFull).toBeLessThanOrEqual((60 - left) * 1_000 + 1_000)
      await response.text()
    }
  }

const noHeadersWithoutLimits =
  (dialect: DialectCase): Check =>
  async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), { caller: () => ({ id: 'ada' }) })

    const response = await post(url, dialect)

    expect(response.status).toBe(200)
    expect([...response.headers.keys()].filter((name) => name.includes('ratelimit'))).toEqual([])
  }

const refused =
  (dialect: DialectCase): Check =>
  async (serve) => {
    for (const [limits, name] of [
      [{ requestsPerMinute: 1 }, 'requests'],
      // The limit is below what one answer reserves, so the first request takes all of it.
      [{ requestsPerMinute: 60, tokensPerMinute: 10 }, 'tokens'],
    ] as const) {
      let isDone = (): void => {}
      const running = new Promise<string>((resolve) => {
        isDone = () => resolve('Hello there.')
      })
      const engine = scriptedEngine(() => running)
      const url = await serve(engine, limitedTo(limits))
      const first = post(url, dialect)
      await vi.waitFor(() => expect(engine.running).toBe(1), soon)

      for (const stream of [false, true]) {
        const response = await post(url, { ...dialect, body: { ...dialect.body, stream } })
        const { headers } = response

        const waitMs = Number(headers.get('retry-after-ms'))
        expect(waitMs).toBeGreaterThan(50_000)
        expect(headers.get('retry-after')).toBe(`${Math.ceil(waitMs / 1_000)}`)
        expect(headers.get(dialect.headers(name).remaining)).toBe('0')
        expect(headers.get('content-type')).toMatch(/^application\/json/)
        const text = new RegExp(`limit of ${name === 'requests' ? '1 request' : `10 ${name}`} per minute`)
        expect(await response.json()).toEqual(dialect.refused(name, expect.stringMatching(text)))
        expect(response.status).toBe(429)
      }
      isDone()
      expect((await first).status).toBe(200)
      expect(engine.requests).toHaveLength(1)
    }
  }

const tooManyAtOnce =
  (dialect: DialectCase): Check =>
  async (serve) => {
    let isDone = (): void => {}
    const running = new Promise<string>((resolve) => {
      isDone = () => resolve('Hello there.')
    })
    const engine = scriptedEngine(() => running)
    const url = await serve(engine, limitedTo({ concurrent: 1, requestsPerMinute: 60 }))
    const first = post(url, dialect)
    await vi.waitFor(() => expect(engine.running).toBe(1), soon)

    for (const stream of [false, true]) {
      const response = await post(url, { ...dialect, body: { ...dialect.body, stream } })
      const { headers } = response

      // The end of the running request is unknown, so the wait is a fixed second.
      expect([headers.get('retry-after'), headers.get('retry-after-ms')]).toEqual(['1', '1000'])
      expect(headers.get(dialect.headers('requests').remaining)).toBe('59')
      const text = /limit of 1 request at the same time/
      expect(await response.json()).toEqual(dialect.refused('concurrent', expect.stringMatching(text)))
      expect(response.status).toBe(429)
    }
    isDone()
    expect((await first).status).toBe(200)
    expect((await post(url, dialect)).status).toBe(200)
  }

const spent =
  (dialect: DialectCase): Check =>
  async (_serve, start) => {
    const engine = scriptedEngine('Hello there.')
    const prices = { '*': { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } }
    const { url, llm } = await start(engine, { keys: true, prices })

    for (const period of ['day', 'month', 'lifetime'] as const) {
      const { secret } = await llm.keys.create({
        name: 'team-a',
        spendingLimit: { usd: '0.000000001', period },
      })
      const key = { 'x-api-key': secret, 'anthropic-version': '2023-06-01' }
      for (const stream of [false, true]) {
        const response = await post(url, { ...dialect, body: { ...dialect.body, stream } }, key)

        const body = (await response.json()) as { error: string | { message: string } }
        const text = typeof body.error === 'string' ? body.error : body.error.message
        const words = text.slice(text.indexOf('The key'))
        expect(body).toEqual(dialect.spent.body(words))
        expect(words).toContain('"team-a"')
        if (period === 'lifetime') expect(words).not.toContain('resumes')
        else
          expect(words).toMatch(
            period === 'day'
              ? /per day\. Access resumes at \d{4}-\d\d-\d\dT00:00:00Z/
              : /per month\. Access resumes at \d{4}-\d\d-01T00:00:00Z/,
          )
        expect(response.status).toBe(dialect.spent.status)
        expect(response.headers.get('x-should-retry')).toBe('false')
        expect(response.headers.get('retry-after')).toBeNull()
      }

      for (const call of dialect.free) {
        const response =
          typeof call === 'string' ? await fetch(url + call, { headers: key }) : await post(url, call, key)
        expect([call, response.status]).toEqual([call, 200])
      }
    }
    expect(engine.requests).toEqual([])
  }

/** Checks that token counting has a separate limit of requests per minute. */
const countingApart: Check = async (serve) => {
  const { anthropic } = dialects
  const url = await serve(scriptedEngine('Hello there.'), limitedTo({ requestsPerMinute: 2 }))
  const count = { path: '/v1/messages/count_tokens', body: hello }
  const { limit, remaining, reset } = anthropic.headers('requests')

  for (const left of ['1', '0']) {
    const response = await post(url, count)
    expect(response.status).toBe(200)
    expect([response.headers.get(limit), response.headers.get(remaining)]).toEqual(['2', left])
    expect(anthropic.untilFull(String(response.headers.get(reset)))).toBeGreaterThan(0)
  }
  const refused = await post(url, count)
  expect(refused.status).toBe(429)
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(25)
  expect(refused.headers.get('retry-after')).toBe(
    `${Math.ceil(Number(refused.headers.get('retry-after-ms')) / 1_000)}`,
  )
  expect(refused.headers.get(remaining)).toBe('0')
  expect(await refused.json()).toEqual(
    anthropic.refused('requests', expect.stringMatching(/2 requests per minute/)),
  )

  // Token counts do not use up the limit of messages, nor the other way round.
  for (const left of ['1', '0']) {
    const response = await post(url, anthropic)
    expect([response.status, response.headers.get(remaining)]).toEqual([200, left])
    await response.text()
  }
  expect((await post(url, anthropic)).status).toBe(429)
}

/** Number of calls that the engine runs at once (permits of the queue). */
const permits = 64

const queueIsFull =
  (dialect: DialectCase): Check =>
  async (serve) => {
    let areDone = (): void => {}
    const running = new Promise<string>((resolve) => {
      areDone = () => resolve('Hello there.')
    })
    const engine = scriptedEngine(() => running)
    const url = await serve(engine, { maxQueued: 0 })
    const inside = Array.from({ length: permits }, () => post(url, dialect))
    await vi.waitFor(() => expect(engine.running).toBe(permits), soon)

    for (const stream of [false, true]) {
      const response = await post(url, { ...dialect, body: { ...dialect.body, stream } })

      expect(response.headers.get('retry-after')).toMatch(/^[1-9]\d*$/)
      expect(Number(response.headers.get('retry-after-ms'))).toBeGreaterThanOrEqual(1_000)
      expect(await response.json()).toEqual(dialect.busy.body)
      expect(response.status).toBe(dialect.busy.status)
    }
    areDone()
    expect((await Promise.all(inside)).map(({ status }) => status)).toEqual(Array(permits).fill(200))
    expect((await post(url, dialect)).status).toBe(200)
  }

export function limitsOf<Name extends ClientApi>(name: Name) {
  const dialect = dialects[name]
  return {
    [`${name}:limits:headers-on-every-response`]: onEveryAnswer(dialect),
    [`${name}:limits:no-headers-without-limits`]: noHeadersWithoutLimits(dialect),
    [`${name}:limits:over-the-limit`]: refused(dialect),
    [`${name}:limits:too-many-at-once`]: tooManyAtOnce(dialect),
    ...(name === 'anthropic' && { 'anthropic:limits:counting-apart': countingApart }),
    [`${name}:limits:spending-limit`]: spent(dialect),
    [`${name}:limits:queue-is-full`]: queueIsFull(dialect),
    // The suite tests that the ids of checks and requirements are the same, so the cast is safe.
  } as Readonly<Record<Extract<RequirementId, `${Name}:limits:${string}`>, Check>>
}
