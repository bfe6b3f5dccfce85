/** Authentication and allowed origins, in every dialect and on every mount. */
import { request } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Caller } from '@modelmount/core'
import { type Engine, uncached } from '@modelmount/core/engine'
import { scriptedEngine } from '@modelmount/core/testing'
import { expect } from 'vitest'
import { type ClientApi, greeting, hello, json } from './calls.ts'
import type { Check } from './suite.ts'

/** Requests and errors of a dialect. */
interface DialectCase {
  readonly path: string
  readonly body: object
  /** Error for an unknown caller. */
  readonly unknown: object
  /** Error for a caller without permission. */
  readonly refused: object
  /** Requests to other routes that name a model. */
  readonly others: readonly Pick<DialectCase, 'path' | 'body'>[]
  /** Path of the list of models. */
  readonly list: string
}

const message = expect.stringMatching(/./)
const openaiError = (code: string | null) => ({
  error: { message, type: 'invalid_request_error', param: null, code },
})
const anthropicError = (type: string) => ({
  type: 'error',
  error: { type, message },
  request_id: expect.stringMatching(/^req_.+/),
})

const dialects: Readonly<Record<ClientApi, DialectCase>> = {
  ollama: {
    path: '/api/chat',
    body: { ...hello, stream: false },
    unknown: { error: message },
    refused: { error: message },
    others: [
      { path: '/api/generate', body: { model: 'tiny', prompt: 'Hello' } },
      { path: '/api/generate', body: { model: 'tiny' } },
      { path: '/api/embed', body: { model: 'tiny', input: 'Hello' } },
      { path: '/api/show', body: { model: 'tiny' } },
    ],
    list: '/api/tags',
  },
  openai: {
    path: '/v1/chat/completions',
    body: hello,
    unknown: openaiError('invalid_api_key'),
    refused: openaiError(null),
    others: [
      { path: '/v1/completions', body: { model: 'tiny', prompt: 'Hello' } },
      { path: '/v1/completions', body: { model: 'tiny', prompt: [1, 2], echo: true } },
      { path: '/v1/embeddings', body: { model: 'tiny', input: 'Hello' } },
    ],
    list: '/v1/models',
  },
  anthropic: {
    path: '/v1/messages',
    body: greeting,
    unknown: anthropicError('authentication_error'),
    refused: anthropicError('permission_error'),
    others: [{ path: '/v1/messages/count_tokens', body: greeting }],
    list: '/v1/models',
  },
}

const evil = 'https://evil.example'
const local = 'http://localhost:5173'

const call = (url: string, { path, body }: DialectCase, headers: Record<string, string>) =>
  fetch(url + path, { method: 'POST', headers: { ...json, ...headers }, body: JSON.stringify(body) })

const preflight = (url: string, { path }: DialectCase, headers: Record<string, string>) =>
  fetch(url + path, { method: 'OPTIONS', headers: { 'access-control-request-method': 'POST', ...headers } })

/** Sends a custom `Host` header, which `fetch` forbids. */
function callHost(url: string, { path, body }: DialectCase, host: string) {
  return new Promise<{ readonly status: number | undefined; readonly body: unknown }>((resolve, reject) => {
    const call = request(url + path, { method: 'POST', headers: { ...json, host } })
    call.once('error', reject)
    call.once('response', (response) => {
      text(response).then((body) => resolve({ status: response.statusCode, body: parsed(body) }), reject)
    })
    call.end(JSON.stringify(body))
  })
}

const parsed = (body: string): unknown => (body === '' ? undefined : JSON.parse(body))

/** Body of the 403 for a disallowed origin or host. Ollama's has no body. */
const refusedPage = ({ path, refused }: DialectCase): object | undefined =>
  path.startsWith('/api/') ? undefined : refused

const checks: Readonly<Record<string, (dialect: DialectCase) => Check>> = {
  'without authentication, a call through a proxy gets a 401': (dialect) => async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    for (const header of ['x-forwarded-for', 'forwarded', 'x-real-ip']) {
      const response = await call(url, dialect, { [header]: '203.0.113.7' })

      expect(response.status).toBe(401)
      expect(await response.json()).toEqual(dialect.unknown)
    }
    expect(engine.requests).toEqual([])
  },

  'a call with a foreign `Host` header gets a 403': (dialect) => async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    const rebound = await callHost(url, dialect, 'evil.example')
    const local = await callHost(url, dialect, 'models.localhost')

    expect(rebound).toEqual({ status: 403, body: refusedPage(dialect) })
    expect(local.status).toBe(200)
    expect(engine.requests).toHaveLength(1)
  },

  'with `auth: host`, an unknown caller gets a 401, and a caller without the scope a 403':
    (dialect) => async (serve) => {
      const engine = scriptedEngine('Hello there.')
      let caller: Caller | undefined
      const url = await serve(engine, { caller: () => caller })

      const responses: Response[] = []
      for (caller of [undefined, { id: 'guest', scopes: ['models'] as const }, { id: 'ada' }])
        responses.push(await call(url, dialect, {}))

      const [nobody, guest, ada] = responses as [Response, Response, Response]
      expect([nobody.status, await nobody.json()]).toEqual([401, dialect.unknown])
      expect([guest.status, await guest.json()]).toEqual([403, dialect.refused])
      expect(ada.status).toBe(200)
      expect(engine.requests).toHaveLength(1)
    },

  'with `auth: keys`, only calls with a valid key, in either header, are answered':
    (dialect) => async (_serve, start) => {
      const engine = scriptedEngine('Hello there.')
      const { url, llm } = await start(engine, { keys: true })
      const { key, secret } = await llm.keys.create({ name: 'good' })
      const { secret: admin } = await llm.keys.create({ name: 'admin', scopes: ['admin'] })

      for (const headers of [
        {},
        { 'x-api-key': "' OR 1=1 --" },
        { 'x-api-key': `"${'x'.repeat(8_000)}` },
        { authorization: `Bearer ${secret.slice(0, -1)}` },
        { authorization: `Basic ${secret}` },
        { 'x-api-key': secret, authorization: `Bearer ${admin}` },
      ]) {
        const response = await call(url, dialect, headers)
        expect([response.status, await response.json()]).toEqual([401, dialect.unknown])
      }
      const noScope = await call(url, dialect, { 'x-api-key': admin })
      expect([noScope.status, await noScope.json()]).toEqual([403, dialect.refused])
      expect(engine.requests).toEqual([])

      for (const headers of [{ 'x-api-key': secret }, { authorization: `Bearer ${secret}` }])
        expect((await call(url, dialect, headers)).status).toBe(200)
      await llm.keys.revoke(key.id)
      expect((await call(url, dialect, { 'x-api-key': secret })).status).toBe(401)
      expect(engine.requests).toHaveLength(2)
    },

  'a key that is limited to some models lists only these, and gets a 403 for others':
    (dialect) => async (_serve, start) => {
      const engine = scriptedEngine('Hello there.')
      const { url, llm } = await start(engine, { keys: true })
      const { secret: own } = await llm.keys.create({ name: 'own', models: ['Tiny:latest', 'absent'] })
      const { secret: other } = await llm.keys.create({ name: 'other', models: ['other'] })
      const listed = async (secret: string) => {
        const headers = { 'x-api-key': secret, 'anthropic-version': '2023-06-01' }
        const response = await fetch(url + dialect.list, { headers })
        const body = (await response.json()) as Record<string, readonly { id?: string; name?: string }[]>
        // A dated id is listed when the file of the model is hashed.
        return (body.models ?? body.data)
          ?.map(({ id, name }) => id ?? name)
          .filter((name) => !/^tiny-\d{8}$/.test(`${name}`))
      }

      expect(await listed(own)).toEqual(['tiny:latest'])
      expect(await listed(other)).toEqual([])
      expect((await call(url, dialect, { 'x-api-key': own })).status).toBe(200)
      for (const route of [dialect, ...dialect.others]) {
        const response = await call(url, { ...dialect, ...route }, { 'x-api-key': other })
        expect([route.path, response.status, await response.json()]).toEqual([
          route.path,
          403,
          dialect.refused,
        ])
      }
      expect(engine.requests).toHaveLength(1)
    },

  'a web page from this machine may send an API key': (dialect) => async (_serve, start) => {
    const { url, llm } = await start(scriptedEngine('Hello there.'), { keys: true })
    const { secret } = await llm.keys.create({ name: 'page' })

    const allowed = await preflight(url, dialect, {
      origin: local,
      'access-control-request-headers': 'content-type,x-api-key',
    })
    const response = await call(url, dialect, { origin: local, 'x-api-key': secret })
    const elsewhere = await call(url, dialect, { origin: evil, 'x-api-key': secret })

    expect(allowed.status).toBe(204)
    expect(allowed.headers.get('access-control-allow-headers')).toContain('x-api-key')
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([200, local])
    expect(elsewhere.status).toBe(403)
  },

  'a web page from another origin gets a 403, and no model is called': (dialect) => async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine)

    const response = await call(url, dialect, { origin: evil })

    expect(response.headers.get('access-control-allow-origin')).toBeNull()
    expect(response.status).toBe(403)
    expect(parsed(await response.text())).toEqual(refusedPage(dialect))
    expect(engine.requests).toEqual([])
  },

  'a web page from this machine may read the answer and its headers': (dialect) => async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await call(url, dialect, { origin: local })

    expect(response.status).toBe(200)
    expect(response.headers.get('access-control-allow-origin')).toBe(local)
    expect(response.headers.get('access-control-expose-headers')).toBe('*')
    expect(response.headers.get('vary')).toContain('Origin')
  },

  'a web page from this machine may read an error': (dialect) => async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await call(url, { ...dialect, body: {} }, { origin: local })

    expect(response.status).toBe(400)
    expect(response.headers.get('access-control-allow-origin')).toBe(local)
  },

  'a preflight from this machine gets the allowed methods and headers': (dialect) => async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))
    const wanted = 'authorization,content-type,x-stainless-os'

    const response = await preflight(url, dialect, {
      origin: 'http://127.0.0.1:3000',
      'access-control-request-headers': wanted,
    })

    expect(response.status).toBe(204)
    expect(response.headers.get('access-control-allow-origin')).toBe('http://127.0.0.1:3000')
    expect(response.headers.get('access-control-allow-methods')).toBe('POST')
    expect(response.headers.get('access-control-allow-headers')).toBe(wanted)
  },

  'reused prompt tokens are in a header, with and without `stream`': (dialect) => async (serve) => {
    const url = await serve(reusing)

    for (const stream of [false, true]) {
      const response = await call(url, { ...dialect, body: { ...dialect.body, stream } }, {})

      expect(response.status).toBe(200)
      expect(response.headers.get('x-prompt-tokens-reused')).toBe('5')
      await response.text()
    }
  },

  'a well-formed `x-request-id` is kept in answers, streams and errors, and another one is replaced':
    (dialect) => async (serve) => {
      const url = await serve(scriptedEngine('Hello there.'))
      const header = dialect.path === '/v1/messages' ? 'request-id' : 'x-request-id'
      const given = 'web-1:7f0c2b5e-8d5f-4a3e_9d6c/0+1=.'
      const responses = async (id: string) => [
        await call(url, dialect, { 'x-request-id': id }),
        await call(url, { ...dialect, body: { ...dialect.body, stream: true } }, { 'x-request-id': id }),
        await call(url, { ...dialect, body: {} }, { 'x-request-id': id }),
        await call(url, { ...dialect, path: `${dialect.path}/nope` }, { 'x-request-id': id }),
      ]

      for (const { headers } of await responses(given)) expect(headers.get(header)).toBe(given)
      for (const id of ['two words', 'a'.repeat(129), '{"level":"error"}'])
        for (const { headers } of await responses(id)) expect(headers.get(header)).toMatch(/^req_[\w-]{21}$/)
      if (dialect.path !== '/v1/messages') return
      const [, , failed] = await responses(given)
      expect(await failed?.json()).toMatchObject({ type: 'error', request_id: given })
    },

  'a preflight from another origin gets a 403': (dialect) => async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'))

    const response = await preflight(url, dialect, { origin: evil })

    expect(response.status).toBe(403)
    expect(response.headers.get('access-control-allow-origin')).toBeNull()
  },
}

/** An engine that reports 5 of 7 prompt tokens as reused. */
const reusing: Engine = {
  ...scriptedEngine(''),
  async *generate({ model }) {
    const usage = { inputTokens: 7, reusedTokens: 5, ...uncached }
    yield { type: 'start', model, ...usage, fingerprint: 'fp' }
    const timings = { loadMs: 0, promptMs: 0, generateMs: 0 }
    yield { type: 'end', finishReason: 'stop', usage: { ...usage, outputTokens: 0 }, timings }
  },
}

/** Every check in every dialect. */
export const manners: Readonly<Record<string, Check>> = {
  ...Object.fromEntries(
    Object.entries(dialects).flatMap(([name, dialect]) =>
      Object.entries(checks).map(([what, check]) => [`${name}: ${what}`, check(dialect)]),
    ),
  ),

  'openai: reused tokens of several prompts are added up, in a stream only those of the first prompt': async (
    serve,
  ) => {
    const url = await serve(reusing)
    const reused = async (stream: boolean): Promise<string | null> => {
      const body = { model: 'tiny', prompt: ['Hello', 'there'], stream }
      const response = await call(url, { ...dialects.openai, path: '/v1/completions', body }, {})
      await response.text()
      return response.headers.get('x-prompt-tokens-reused')
    }

    expect([await reused(false), await reused(true)]).toEqual(['10', '5'])
  },
}
