/** The function with which the host app names callers never answered, and each request waited for it without end. */
import type { RequestListener } from 'node:http'
import { type Caller, createLlm, type Llm, LlmError, routesFor } from '@modelmount/core'
import {
  type AuthenticateContext,
  type AuthenticateOptions,
  toFetchHandler,
  toNodeHandler,
} from '@modelmount/core/http'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter as expressRouter } from '@modelmount/express'
import { llmRouter as koaRouter } from '@modelmount/koa'
import { LlmModule } from '@modelmount/nest'
import express from 'express'
import express4 from 'express4'
import Koa from 'koa'
import { afterAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { fetchHost } from '../../support/fetch.ts'
import { listen } from '../../support/listen.ts'
import { nestHandler } from '../../support/nest.ts'

interface Options {
  readonly authenticate: (
    source: unknown,
    context: AuthenticateContext,
  ) => Caller | undefined | Promise<Caller | undefined>
  readonly authenticateTimeout?: AuthenticateOptions<unknown>['authenticateTimeout']
}

const mounts: Readonly<Record<string, (llm: Llm, options: Options) => RequestListener>> = {
  'Express 4': (llm, options) => express4().use(expressRouter(llm, options)),
  'Express 5': (llm, options) => express().use(expressRouter(llm, options)),
  Koa: (llm, options) => {
    const app = new Koa().use(koaRouter(llm, options).routes())
    app.silent = true
    return app.callback()
  },
  Nest: (llm, options) => nestHandler(llm, options),
  "Node's own server": (llm, options) => toNodeHandler(routesFor(), llm, options),
  fetch: (llm, options) => fetchHost(toFetchHandler(routesFor(), llm, options)),
}

const warn = vi.fn()
const error = vi.fn()
const engine = scriptedEngine('Hello')
const llm = await createLlm({ engine, auth: 'host', logger: { warn, error } })
afterAll(() => llm.close())
beforeEach(() => {
  warn.mockReset()
  error.mockReset()
})

const messages = [{ role: 'user', content: 'Hi' }]
const post = (url: string, body: object, init: RequestInit = {}): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
    body: JSON.stringify({ model: 'any', messages, ...body }),
    ...init,
  })

describe.each(Object.keys(mounts))('%s', (name) => {
  const serve = async (options: Options): Promise<string> => {
    const { url, close } = await listen(mounts[name]?.(llm, options) as RequestListener)
    onTestFinished(close)
    return url
  }

  test('a request whose authentication hangs is rejected in the format of its API, and the signal aborts', async () => {
    const signals: AbortSignal[] = []
    const authenticate: Options['authenticate'] = (_source, { signal }) => {
      signals.push(signal)
      return new Promise(() => {})
    }
    const url = await serve({ authenticate, authenticateTimeout: '50ms' })
    const message = 'The app did not authenticate this request within 0.05 s. Try again in 5 s.'

    const openai = await post(`${url}/v1/chat/completions`, { stream: true })
    const anthropic = await post(`${url}/v1/messages`, { max_tokens: 5 })
    const ollama = await post(`${url}/api/chat`, {})

    expect([openai.status, anthropic.status, ollama.status]).toEqual([503, 503, 503])
    expect(openai.headers.get('retry-after')).toBe('5')
    expect(await openai.json()).toMatchObject({ error: { message, type: 'server_error' } })
    expect(await anthropic.json()).toMatchObject({ error: { message, type: 'api_error' } })
    expect(await ollama.json()).toEqual({ error: message })
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true])
    expect(engine.requests).toEqual([])
  })

  test('the signal aborts when the client disconnects', async () => {
    const client = new AbortController()
    let signal: AbortSignal | undefined
    const authenticate: Options['authenticate'] = (_source, context) => {
      signal = context.signal
      client.abort()
      return new Promise(() => {})
    }
    const url = await serve({ authenticate })

    await expect(post(`${url}/api/chat`, {}, { signal: client.signal })).rejects.toThrow()

    await vi.waitFor(() => expect(signal?.aborted).toBe(true))
    expect([warn.mock.calls, error.mock.calls]).toEqual([[], []])
  })

  test('an LlmError of `authenticate` is the response, in the format of the API', async () => {
    const authenticate = () => Promise.reject(new LlmError('permission', 'This account is locked.'))
    const url = await serve({ authenticate })

    const response = await post(`${url}/v1/messages`, { max_tokens: 5 })

    expect(response.status).toBe(403)
    expect(await response.json()).toMatchObject({
      error: { type: 'permission_error', message: 'This account is locked.' },
    })
  })

  test('a caller that is found in time is served, and its signal does not abort', async () => {
    let signal: AbortSignal | undefined
    const authenticate: Options['authenticate'] = async (_source, context) => {
      signal = context.signal
      return { id: 'ann' }
    }
    const url = await serve({ authenticate, authenticateTimeout: '30s' })

    const response = await fetch(`${url}/v1/models`)

    expect(response.status).toBe(200)
    expect(signal?.aborted).toBe(false)
  })
})

test.each([
  ['Express', (options: Options) => expressRouter(llm, options)],
  ['Koa', (options: Options) => koaRouter(llm, options)],
  ['Nest', (options: Options) => LlmModule.forRoot({ llm, ...options })],
  ["Node's own server", (options: Options) => toNodeHandler(routesFor(), llm, options)],
  ['fetch', (options: Options) => toFetchHandler(routesFor(), llm, options)],
])('%s checks the time when the routes are mounted', (_, mount) => {
  expect(() => mount({ authenticate: () => undefined, authenticateTimeout: 'soon' as '1s' })).toThrow(
    /^`authenticateTimeout`: /,
  )
})

test('each request whose authentication hangs is logged, so that a second outage is visible, too', async () => {
  const authenticate = () => new Promise<undefined>(() => {})
  const handle = toFetchHandler(routesFor(), llm, { authenticate, authenticateTimeout: 40 })

  for (let call = 0; call < 2; call++) await handle(new Request('http://localhost/v1/models'))

  const line = [
    { err: expect.any(LlmError), requestId: expect.stringMatching(/^req_/) },
    expect.stringContaining('did not authenticate this request within 0.04 s'),
  ]
  expect(error.mock.calls).toEqual([line, line])
})

test("an error of `authenticate` on Node's own server is rendered, and logged with its cause", async () => {
  const cause = new Error('The session store is away.')
  const authenticate = () => Promise.reject(cause)
  const { url, close } = await listen(toNodeHandler(routesFor(), llm, { authenticate }))
  onTestFinished(close)

  const response = await fetch(`${url}/v1/models`)

  expect(response.status).toBe(500)
  expect(await response.text()).not.toContain('session store')
  expect(error.mock.calls).toEqual([
    [
      { err: expect.objectContaining({ cause }), requestId: response.headers.get('x-request-id') },
      expect.any(String),
    ],
  ])
})
