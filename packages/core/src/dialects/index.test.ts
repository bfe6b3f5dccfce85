import { expect, test } from 'vitest'
import { LlmError } from '../errors.ts'
import type { HttpRequest } from '../http/message.ts'
import { internals, type Llm } from '../llm.ts'
import { type DialectName, dialectNames, routesFor } from './index.ts'

const version = { 'anthropic-version': '2023-06-01' }

const requestOf = (path: string, headers: Readonly<Record<string, string>> = {}): HttpRequest => ({
  method: 'GET',
  path,
  params: {},
  remoteAddress: '127.0.0.1',
  httpVersion: '1.1',
  signal: new AbortController().signal,
  header: (name) => headers[name],
  headerNames: () => Object.keys(headers),
  query: () => undefined,
  queryAll: () => [],
  baseUrl: () => undefined,
  json: async () => ({}),
  bytes: async function* () {},
  jsonBytes: async function* () {},
})

const pathsOf = (names?: readonly DialectName[]): string[] =>
  routesFor(names)
    .routes.filter(({ method }) => method !== 'OPTIONS')
    .map(({ method, path }) => `${method} ${path}`)

/** Finds the dialect of an error response by its body. Only Ollama's router sends plain text. */
function speakerOf(response: { readonly body: unknown }): string {
  if (response.body === '404 page not found') return 'ollama'
  const body = JSON.parse(response.body as string)
  if (typeof body.error === 'string') return 'ollama'
  return 'request_id' in body ? 'anthropic' : 'openai'
}

test('all dialects are served by default, and a shared path is one route', () => {
  expect(dialectNames).toEqual(['ollama', 'openai', 'anthropic', 'modelmount'])
  expect(pathsOf().sort()).toEqual([
    'DELETE /api/delete',
    'DELETE /v1/conversations/:id',
    'DELETE /v1/conversations/:id/items/:item',
    'DELETE /v1/files/:id',
    'DELETE /v1/messages/batches/:id',
    'DELETE /v1/models/*model',
    'DELETE /v1/responses/:id',
    'GET /api/ps',
    'GET /api/tags',
    'GET /api/version',
    'GET /modelmount/v1/models',
    'GET /v1/batches',
    'GET /v1/batches/:id',
    'GET /v1/conversations/:id',
    'GET /v1/conversations/:id/items',
    'GET /v1/conversations/:id/items/:item',
    'GET /v1/files',
    'GET /v1/files/:id',
    'GET /v1/files/:id/content',
    'GET /v1/messages/batches',
    'GET /v1/messages/batches/:id',
    'GET /v1/messages/batches/:id/results',
    'GET /v1/models',
    'GET /v1/models/*model',
    'GET /v1/responses/:id',
    'GET /v1/responses/:id/input_items',
    'HEAD /api/blobs/:digest',
    'POST /api/blobs/:digest',
    'POST /api/chat',
    'POST /api/copy',
    'POST /api/create',
    'POST /api/embed',
    'POST /api/embeddings',
    'POST /api/event_logging/batch',
    'POST /api/generate',
    'POST /api/pull',
    'POST /api/push',
    'POST /api/show',
    'POST /modelmount/v1/count-cached-tokens',
    'POST /modelmount/v1/count-tokens',
    'POST /modelmount/v1/delete-prompt-states',
    'POST /modelmount/v1/detokenize',
    'POST /modelmount/v1/embed',
    'POST /modelmount/v1/generate',
    'POST /modelmount/v1/load',
    'POST /modelmount/v1/render',
    'POST /modelmount/v1/rerank',
    'POST /modelmount/v1/token-pieces',
    'POST /modelmount/v1/tokenize',
    'POST /modelmount/v1/unload',
    'POST /v1/batches',
    'POST /v1/batches/:id/cancel',
    'POST /v1/chat/completions',
    'POST /v1/chat/completions/input_tokens',
    'POST /v1/completions',
    'POST /v1/conversations',
    'POST /v1/conversations/:id',
    'POST /v1/conversations/:id/items',
    'POST /v1/embeddings',
    'POST /v1/files',
    'POST /v1/messages',
    'POST /v1/messages/batches',
    'POST /v1/messages/batches/:id/cancel',
    'POST /v1/messages/count_tokens',
    'POST /v1/rerank',
    'POST /v1/responses',
    'POST /v1/responses/:id/cancel',
    'POST /v1/responses/compact',
    'POST /v1/responses/input_tokens',
  ])
})

test.each<[DialectName, string[]]>([
  [
    'openai',
    [
      ...['POST /v1/chat/completions', 'POST /v1/chat/completions/input_tokens', 'POST /v1/completions'],
      ...['POST /v1/embeddings', 'POST /v1/rerank'],
      ...['POST /v1/responses', 'POST /v1/responses/input_tokens', 'POST /v1/responses/compact'],
      ...['GET /v1/responses/:id', 'DELETE /v1/responses/:id', 'GET /v1/responses/:id/input_items'],
      ...['POST /v1/responses/:id/cancel', 'POST /v1/conversations', 'GET /v1/conversations/:id'],
      ...['POST /v1/conversations/:id', 'DELETE /v1/conversations/:id'],
      ...['POST /v1/conversations/:id/items', 'GET /v1/conversations/:id/items'],
      ...['GET /v1/conversations/:id/items/:item', 'DELETE /v1/conversations/:id/items/:item'],
      ...['POST /v1/batches', 'GET /v1/batches', 'GET /v1/batches/:id', 'POST /v1/batches/:id/cancel'],
      ...['POST /v1/files', 'GET /v1/files', 'GET /v1/files/:id', 'DELETE /v1/files/:id'],
      'GET /v1/files/:id/content',
      ...['GET /v1/models', 'GET /v1/models/*model', 'DELETE /v1/models/*model'],
    ],
  ],
  [
    'anthropic',
    [
      ...['POST /v1/messages', 'POST /v1/messages/count_tokens'],
      ...['POST /v1/messages/batches', 'GET /v1/messages/batches', 'GET /v1/messages/batches/:id'],
      ...['DELETE /v1/messages/batches/:id', 'POST /v1/messages/batches/:id/cancel'],
      ...['GET /v1/messages/batches/:id/results', 'POST /api/event_logging/batch'],
      ...['GET /v1/models', 'GET /v1/models/*model'],
    ],
  ],
])('%s alone has its own routes', (name, paths) => {
  expect(pathsOf([name])).toEqual(paths)
})

test.each<[readonly DialectName[], string, object, string]>([
  [['openai', 'anthropic'], '/v1/nope', {}, 'openai'],
  [['openai', 'anthropic'], '/v1/nope', version, 'anthropic'],
  [['anthropic', 'openai'], '/v1/nope', {}, 'openai'],
  [['openai', 'anthropic'], '/v1/messages', {}, 'anthropic'],
  [['openai', 'anthropic'], '/v1/messages/batches', {}, 'anthropic'],
  [['openai', 'anthropic'], '/v1/messagesque', {}, 'openai'],
  [['openai'], '/v1/nope', version, 'openai'],
  [['openai'], '/v1/messages', version, 'openai'],
  [['anthropic'], '/v1/nope', {}, 'anthropic'],
  [dialectNames, '/api/nope', {}, 'ollama'],
  [dialectNames, '/apiary', {}, 'ollama'],
  [dialectNames, '/apiary', { 'x-stainless-lang': 'js' }, 'openai'],
  [dialectNames, '/v1/nope', {}, 'openai'],
  [['ollama'], '/v1/nope', {}, 'ollama'],
])('with the dialects %j, %s with the headers %j gets an error of %s', (names, path, headers, speaker) => {
  const request = requestOf(path, headers as Record<string, string>)
  const table = routesFor(names)
  const llm = {
    [internals]: { access: { checkOrigin: () => ({}) }, stallLimits: { responseMs: 60_000, bodyMs: 60_000 } },
  } as unknown as Llm

  expect(speakerOf(table.handleUnmatched(request, llm))).toBe(speaker)
  expect(speakerOf(table.renderError(request, new LlmError('internal', 'Later.'), llm))).toBe(speaker)
})

test('with cloudRoutes, the routes of the cloud of Ollama are served, too', () => {
  const cloud = routesFor(undefined, { cloudRoutes: true }).routes.filter(
    ({ method }) => method !== 'OPTIONS',
  )
  const added = cloud
    .map(({ method, path }) => `${method} ${path}`)
    .filter((route) => !pathsOf().includes(route))

  expect(added).toEqual([
    'GET /api/status',
    'POST /api/me',
    'POST /api/signout',
    'DELETE /api/user/keys/:key',
    'GET /api/experimental/model-recommendations',
    'POST /api/experimental/web_search',
    'POST /api/experimental/web_fetch',
  ])
})

test('with llamaServerRoutes, routes of the server of llama.cpp are served, too', () => {
  const { routes } = routesFor(['openai'], { llamaServerRoutes: true })

  expect(routes.filter(({ method }) => method === 'POST').map(({ path }) => path)).toEqual(
    expect.arrayContaining(['/rerank', '/tokenize', '/detokenize', '/apply-template']),
  )
  expect(pathsOf().filter((route) => / .(?:tokenize|detokenize|apply-template|rerank)$/.test(route))).toEqual(
    [],
  )
})

test.each<[readonly DialectName[] | undefined, object, string]>([
  [undefined, { cloudRoutes: 'yes' }, 'Expected `cloudRoutes` to be true or false, got yes (string)'],
  [['openai'], { cloudRoutes: true }, "`cloudRoutes` belongs to the dialect 'ollama'"],
  [undefined, { llamaServerRoutes: 1 }, 'Expected `llamaServerRoutes` to be true or false, got 1 (number)'],
  [['ollama'], { llamaServerRoutes: true }, "`llamaServerRoutes` belongs to the dialect 'openai'"],
  [undefined, { cloud: true }, 'Unknown option `cloud`, expected one of: cloudRoutes, llamaServerRoutes'],
])('with the dialects %j, the options %j throw a TypeError', (names, options, message) => {
  const create = () => routesFor(names, options)

  expect(create).toThrow(TypeError)
  expect(create).toThrow(message)
})

test('an unknown dialect throws a TypeError', () => {
  expect(() => routesFor(['latin' as DialectName])).toThrow(
    "Expected a dialect of ollama, openai, anthropic, modelmount, got 'latin'",
  )
})
