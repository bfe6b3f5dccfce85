/** Which requests the routes answer, and which reach the host app behind them, at the root and below a prefix. */
import { scriptedEngine } from '@modelmount/core/testing'
import { expect } from 'vitest'
import { hello, json } from './calls.ts'
import type { Check } from './suite.ts'

const prefix = '/llm'
const chat = '/v1/chat/completions'

/** Sends requests, and returns those that the host app has answered, and those that the routes have answered. */
async function sortByAnswer(url: string, requests: readonly string[]) {
  const [app, routes]: [string[], string[]] = [[], []]
  for (const request of requests) {
    const [method = '', path] = request.split(' ')
    const { headers } = await fetch(url + path, { method })
    ;(headers.get('x-answered-by') === 'the app' ? app : routes).push(request)
    if (app.includes(request)) expect([request, headers.get('x-request-id')]).toEqual([request, null])
  }
  return { app, routes }
}

const cloudRoutes = [
  'GET /api/status',
  'POST /api/me',
  'POST /api/signout',
  'DELETE /api/user/keys/x',
  'GET /api/experimental/model-recommendations',
  'POST /api/experimental/web_search',
  'POST /api/experimental/web_fetch',
]

const llamaServerRoutes = ['POST /tokenize', 'POST /detokenize', 'POST /apply-template', 'POST /rerank']

const otherMethods = [
  ...['POST /api/tags', 'DELETE /api/tags', 'PUT /api/chat', 'GET /api/generate', 'PATCH /api/ps'],
  ...['GET /api/blobs/sha256:0', 'POST /api/delete', 'POST /api/version'],
  ...[`GET ${chat}`, `HEAD ${chat}`, 'DELETE /v1/models', 'POST /v1/models/tiny', 'PUT /v1/files/x'],
  ...['GET /v1/messages', 'PATCH /v1/messages/batches', 'GET /v1/messages/count_tokens'],
]

const unknownPaths = [
  ...['GET /', 'HEAD /', 'POST /', 'GET /api', 'GET /api/users', 'POST /api/chat/x'],
  ...[
    'GET /v1',
    'GET /v1/nope',
    'POST /v1/images/generations',
    'DELETE /users/1',
    'OPTIONS /api/users',
    'OPTIONS /api/me',
    'GET /api/me',
  ],
]

const ownRequests = [
  ...['GET /api/tags', 'HEAD /api/tags', 'GET /api/version', 'GET /v1/models', 'HEAD /v1/models/tiny'],
  ...['POST /api/chat', `POST ${chat}`, 'POST /v1/messages', 'GET /v1/models/nope', 'DELETE /api/delete'],
]

const preflights = ['OPTIONS /api/tags', `OPTIONS ${chat}`, 'OPTIONS /v1/messages', 'OPTIONS /v1/models/tiny']

export const guests: Readonly<Record<string, Check>> = {
  'at the root, unknown paths, other methods and optional routes pass to the app': async (serve) => {
    const engine = scriptedEngine('Hello there.')
    const url = await serve(engine, { mounted: {} })
    const requests = [...unknownPaths, ...otherMethods, ...cloudRoutes, ...llamaServerRoutes]

    expect(await sortByAnswer(url, requests)).toEqual({ app: requests, routes: [] })
    expect(engine.requests).toEqual([])
  },

  'at the root, the methods of the routes and their preflights do not pass to the app': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), { mounted: {} })
    const requests = [...ownRequests, ...preflights]

    const sorted = await sortByAnswer(url, requests)
    const answer = await fetch(url + chat, { method: 'POST', headers: json, body: JSON.stringify(hello) })
    const preflight = await fetch(`${url}/api/tags`, {
      method: 'OPTIONS',
      headers: { origin: 'http://localhost:5173', 'access-control-request-method': 'DELETE' },
    })

    expect(sorted).toEqual({ app: [], routes: requests })
    expect(answer.status).toBe(200)
    expect([preflight.status, preflight.headers.get('allow')]).toEqual([204, 'GET, HEAD'])
    expect(preflight.headers.get('access-control-allow-methods')).toBe('GET, HEAD')
  },

  'a request that passes to the app keeps its body': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), { mounted: {} })

    for (const path of ['/api/me', '/api/tags', '/users']) {
      const response = await fetch(url + path, { method: 'POST', headers: json, body: '{"name":"Ada"}' })

      expect([path, await response.text()]).toEqual([path, '{"name":"Ada"}'])
    }
  },

  'at the root with cloudRoutes, the cloud routes answer, and their other methods pass to the app': async (
    serve,
  ) => {
    const url = await serve(scriptedEngine('Hello there.'), { mounted: { cloudRoutes: true } })
    const others = ['GET /api/me', 'POST /api/status', 'GET /api/user/keys/x', 'GET /api/experimental']

    expect(await sortByAnswer(url, [...cloudRoutes, ...others])).toEqual({ app: others, routes: cloudRoutes })
  },

  'at the root with llamaServerRoutes, these routes answer, and their other methods pass to the app': async (
    serve,
  ) => {
    const url = await serve(scriptedEngine('Hello there.'), { mounted: { llamaServerRoutes: true } })
    const others = ['GET /tokenize', 'DELETE /rerank', 'POST /tokenize/x', 'POST /reranking']

    const sorted = await sortByAnswer(url, [...llamaServerRoutes, ...others])

    expect(sorted).toEqual({ app: others, routes: llamaServerRoutes })
  },

  'at the root with unknownRoutes: error, nothing passes to the app': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), { mounted: { unknownRoutes: 'error' } })
    const requests = [...unknownPaths, ...otherMethods, ...cloudRoutes, ...llamaServerRoutes].filter(
      (one) => !/^OPTIONS/.test(one),
    )

    expect(await sortByAnswer(url, requests)).toEqual({ app: [], routes: requests })
    expect((await fetch(`${url}/api/me`, { method: 'POST' })).status).toBe(404)
    expect((await fetch(`${url}/api/tags`, { method: 'DELETE' })).status).toBe(405)
  },

  'below a prefix, unknown paths get a 404 and other methods a 405, in the format of their API': async (
    serve,
  ) => {
    const url = (await serve(scriptedEngine('Hello there.'), { mounted: { prefix } })) + prefix
    const invalid = { type: 'invalid_request_error', param: null }

    const unknown = await fetch(`${url}/v1/nope`)
    const cloud = await fetch(`${url}/api/me`, { method: 'POST' })
    const method = await fetch(url + chat, { method: 'DELETE' })
    const home = await fetch(url)
    const answer = await fetch(url + chat, { method: 'POST', headers: json, body: JSON.stringify(hello) })

    expect([unknown.status, await unknown.json()]).toEqual([
      404,
      { error: { ...invalid, message: 'Invalid URL (GET /v1/nope)', code: null } },
    ])
    expect([cloud.status, await cloud.text()]).toEqual([404, '404 page not found'])
    expect([method.status, method.headers.get('allow'), await method.json()]).toEqual([
      405,
      'POST',
      {
        error: {
          ...invalid,
          message: 'DELETE is not allowed on /v1/chat/completions. Allowed: POST.',
          code: 'method_not_supported',
        },
      },
    ])
    expect([home.status, await home.text()]).toEqual([200, 'Ollama is running'])
    expect(answer.status).toBe(200)
  },

  'paths outside of the prefix pass to the app': async (serve) => {
    const url = await serve(scriptedEngine('Hello there.'), { mounted: { prefix } })
    const requests = [
      'GET /',
      'GET /v1/models',
      `POST ${chat}`,
      'GET /llmx/v1/models',
      'GET /x/llm/v1/models',
    ]

    expect(await sortByAnswer(url, requests)).toEqual({ app: requests, routes: [] })
  },
}
