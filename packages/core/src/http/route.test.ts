import { expect, test } from 'vitest'
import { createMatcher, joinParams, methodsByPath, type Route } from './route.ts'

const route = (method: Route<unknown>['method'], path: string): Route<unknown> => ({
  method,
  path,
  handle: async () => ({ status: 200, headers: {}, body: null }),
})

const list = route('GET', '/v1/models')
const get = route('GET', '/v1/models/*model')
const remove = route('DELETE', '/v1/models/*model')
const chat = route('POST', '/v1/chat/completions')
const blob = route('HEAD', '/api/blobs/:digest')
const { match, methodsOf } = createMatcher([list, get, remove, chat, blob])

test.each([
  ['GET', '/v1/models', list, {}],
  ['POST', '/v1/chat/completions', chat, {}],
  ['GET', '/v1/models/tiny', get, { model: 'tiny' }],
  ['DELETE', '/v1/models/tiny', remove, { model: 'tiny' }],
  ['GET', '/v1/models/team/tiny:8b', get, { model: 'team/tiny:8b' }],
  ['GET', '/v1/models/team%2Ftiny%20x', get, { model: 'team/tiny x' }],
  ['HEAD', '/api/blobs/sha256:abc', blob, { digest: 'sha256:abc' }],
])('%s %s matches its route', (method, path, expected, params) => {
  const found = match(method, path)

  expect(found).toEqual({ route: expected, params })
})

test('HEAD matches a GET route', () => {
  const found = match('HEAD', '/v1/models')

  expect(found).toEqual({ route: list, params: {} })
})

test.each([
  ['POST', '/v1/models/tiny', ['GET', 'DELETE']],
  ['GET', '/v1/chat/completions', ['POST']],
  ['OPTIONS', '/v1/models', ['GET']],
])('%s %s matches no route, and the path has the methods %j', (method, path, methods) => {
  expect(match(method, path)).toBeUndefined()
  expect(methodsOf(path)).toEqual(methods)
})

test.each(['/', '/v1', '/v1/model', '/V1/Models', '/v1/chat/completions/x', '/x/v1/models', ''])(
  'the path %j matches no route',
  (path) => {
    expect(match('GET', path)).toBeUndefined()
    expect(methodsOf(path)).toEqual([])
  },
)

test('the first of two matching routes is used', () => {
  const special = route('GET', '/v1/models/special')

  const found = createMatcher([special, get]).match('GET', '/v1/models/special')

  expect(found).toEqual({ route: special, params: {} })
})

test('each path has its methods, in the order of the routes', () => {
  const methods = methodsByPath([list, get, remove, chat])

  expect([...methods]).toEqual([
    ['/v1/models', ['GET']],
    ['/v1/models/*model', ['GET', 'DELETE']],
    ['/v1/chat/completions', ['POST']],
  ])
})

test('a wildcard becomes one string, even if the router passes an array', () => {
  const params = joinParams({ model: ['team', 'tiny'], other: 'a/b', number: 5 })

  expect(params).toEqual({ model: 'team/tiny', other: 'a/b', number: '5' })
})
