import { expect, test } from 'vitest'
import { LlmError } from '../../errors.ts'
import type { HttpRequest } from '../../http/message.ts'
import { type AccessOptions, AuthenticateError, createAccess as create } from './access.ts'
import type { Caller } from './caller.ts'

interface From {
  readonly address?: string
  readonly clientAddress?: string
  readonly host?: string
  readonly httpVersion?: string
  /** The `access-control-allow-origin` that the host app has set. */
  readonly allowedByApp?: string
  /** What the app's `authenticate` returns. */
  readonly caller?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

const call = ({
  address = '127.0.0.1',
  caller,
  headers = {},
  httpVersion = '1.1',
  allowedByApp,
  ...forwarded
}: From = {}): HttpRequest => ({
  method: 'GET',
  path: '/',
  params: {},
  remoteAddress: address,
  ...forwarded,
  httpVersion,
  responseHeader: (name) => (name === 'access-control-allow-origin' ? allowedByApp : undefined),
  authenticate: async () => caller as Caller,
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

const known: Readonly<Record<string, Caller>> = {
  'the-secret': { id: 'key_ada', scopes: ['inference'] },
  admin: { id: 'key_admin', scopes: ['admin'] },
}

const createAccess = (options: AccessOptions) =>
  create(
    options,
    async (secrets) => new Map(Object.entries(known).filter(([secret]) => secrets.includes(secret))),
  )

const thrownBy = async (attempt: () => unknown): Promise<unknown> => {
  try {
    return await attempt()
  } catch (error) {
    return error
  }
}

test('a direct call from this machine is anonymous and has the scope inference', async () => {
  const { authorize } = createAccess({})

  expect(await authorize(call(), 'inference')).toEqual({ id: 'anonymous' })
  expect(await thrownBy(() => authorize(call(), 'models'))).toMatchObject({ code: 'permission' })
})

test('rejects any other call with an error that names the option, also in the log', async () => {
  const { authorize } = createAccess({})

  for (const from of [
    { address: '10.0.0.7' },
    { headers: { 'x-forwarded-for': '10.0.0.7' } },
    { httpVersion: '1.0' },
  ]) {
    expect(await thrownBy(() => authorize(call(from), 'inference'))).toMatchObject({
      code: 'authentication',
      message: expect.stringContaining("auth: 'host'"),
      details: { setup: true },
    })
  }
})

test('rejects a Host header that names another machine', async () => {
  const { authorize } = createAccess({})

  expect(
    await thrownBy(() => authorize(call({ headers: { host: 'evil.example' } }), 'inference')),
  ).toMatchObject({
    code: 'permission',
  })
})

test('with auth `host`, `authenticate` alone identifies the caller', async () => {
  const { authorize } = createAccess({ auth: 'host' })
  const ada = { id: 'ada', scopes: ['inference', 'models'] as const }

  expect(await authorize(call({ address: '10.0.0.7', caller: ada }), 'models')).toBe(ada)
  expect(await thrownBy(() => authorize(call(), 'inference'))).toMatchObject({ code: 'authentication' })
  expect(
    await thrownBy(() => authorize(call({ caller: { id: 'guest', scopes: [] } }), 'inference')),
  ).toMatchObject({
    code: 'permission',
  })
})

test('an `LlmError` of `authenticate` is passed on, and any other error as the cause of an `AuthenticateError`', async () => {
  const { authorize } = createAccess({ auth: 'host' })
  const locked = new LlmError('permission', 'locked')
  const failed = new Error('no session')
  const fail = (cause: Error) =>
    thrownBy(() => authorize({ ...call(), authenticate: () => Promise.reject(cause) }, 'inference'))

  expect(await fail(locked)).toBe(locked)
  const thrown = await fail(failed)
  expect(thrown).toBeInstanceOf(AuthenticateError)
  expect((thrown as Error).cause).toBe(failed)
})

test('converts numeric ids to strings and treats falsy callers as absent', async () => {
  const { authorize } = createAccess({ auth: 'host' })
  const named = (caller: unknown) => authorize(call({ caller }), 'inference')

  expect(await named({ id: 7, tenant: 8n })).toEqual({ id: '7', tenant: '8' })
  for (const nobody of [null, false, '', 0])
    expect(await thrownBy(() => named(nobody))).toMatchObject({ code: 'authentication' })
})

test.each([
  ['ada', 'caller'],
  [{}, 'caller.id'],
  [{ id: '' }, 'caller.id'],
  [{ id: 1.5 }, 'caller.id'],
  [{ id: 'ada', tenant: '' }, 'caller.tenant'],
  [{ id: 'ada', scopes: 'admin' }, 'caller.scopes'],
  [{ id: 'ada', scopes: ['root'] }, 'caller.scopes[0]'],
  [{ id: 'ada', models: 'tiny' }, 'caller.models'],
  [{ id: 'ada', limits: { rpm: 1 } }, 'caller.limits'],
  [{ id: 'ada', limits: { requestsPerMinute: 0 } }, 'caller.limits.requestsPerMinute'],
  [{ id: 'ada', limit: { requestsPerMinute: 1 } }, 'caller'],
  [{ id: 'ada', tier: 5 }, 'caller.tier'],
  [{ id: 'ada', spendLimit: { nanoUsd: 1, per: 'day' } }, 'caller'],
  [{ id: 'ada', spendingLimit: { usd: 1, period: 'week' } }, 'caller.spendingLimit.period'],
  [{ id: 'ada', spendingLimit: { usd: 0.000_000_000_1, period: 'day' } }, 'caller.spendingLimit.usd'],
  [{ id: 'ada', spendingLimit: { usd: 0.1 + 0.2, period: 'day' } }, 'caller.spendingLimit.usd'],
  [
    { id: 'ada', spendingLimit: { usd: Number.POSITIVE_INFINITY, period: 'day' } },
    'caller.spendingLimit.usd',
  ],
])('a caller %j causes a setup error that names %s', async (caller, field) => {
  const { authorize } = createAccess({ auth: 'host' })

  expect(await thrownBy(() => authorize(call({ caller }), 'inference'))).toMatchObject({
    code: 'internal',
    message: expect.stringContaining(`Invalid caller from the app: ${field}: `),
    details: { setup: true },
  })
})

test('ignores the caller of `authenticate` with auth `anonymous`', async () => {
  const { authorize } = createAccess({})

  expect(await authorize(call({ caller: { id: 'admin', scopes: ['admin'] } }), 'inference')).toEqual({
    id: 'anonymous',
  })
})

test('callers without scopes have the scopes of the option', async () => {
  const { authorize } = createAccess({ scopes: ['inference', 'models'] })
  const { authorize: callerOfApp } = createAccess({ auth: 'host', scopes: ['inference', 'models'] })

  expect(await authorize(call(), 'models')).toEqual({ id: 'anonymous' })
  expect(await thrownBy(() => authorize(call(), 'admin'))).toMatchObject({ code: 'permission' })
  expect(await callerOfApp(call({ caller: { id: 'ada' } }), 'models')).toEqual({ id: 'ada' })
  expect(
    await thrownBy(() => callerOfApp(call({ caller: { id: 'guest', scopes: ['inference'] } }), 'models')),
  ).toMatchObject({ code: 'permission' })
})

test('the scopes of a caller are its own, else those of the option', () => {
  const { scopesOf } = createAccess({ scopes: ['inference', 'models'] })

  expect(scopesOf({ id: 'ada' })).toEqual(['inference', 'models'])
  expect(scopesOf({ id: 'guest', scopes: [] })).toEqual([])
  expect(createAccess({}).scopesOf({ id: 'ada' })).toEqual(['inference'])
})

test('rejects an unknown scope in the options', async () => {
  expect(() => createAccess({ scopes: ['all' as 'admin'] })).toThrow('Expected `scopes` to be some of')
})

test('configured origins replace the default origins', async () => {
  const { checkOrigin } = createAccess({ origins: ['https://app.example.com'] })
  const from = (origin: string) => call({ headers: { origin } })

  expect(checkOrigin(from('https://app.example.com'))).toMatchObject({
    'access-control-allow-origin': 'https://app.example.com',
  })
  expect(await thrownBy(() => checkOrigin(from('http://localhost:5173')))).toMatchObject({
    code: 'permission',
    message: expect.stringContaining('origins'),
  })
})

test("with auth `host`, only the page that the app's CORS middleware has named is allowed", async () => {
  const { checkOrigin } = createAccess({ auth: 'host' })
  const origin = 'https://app.example.com'
  const check = (allowedByApp?: string) =>
    thrownBy(() => checkOrigin(call({ headers: { origin }, ...(allowedByApp && { allowedByApp }) })))

  expect(await check(origin)).toEqual({})
  for (const other of ['*', 'https://app.example', undefined])
    expect(await check(other)).toMatchObject({ code: 'permission', details: { page: true } })
})

test("with other values of auth, the app's CORS middleware allows no page", async () => {
  const origin = 'https://app.example.com'

  for (const auth of ['anonymous', 'keys'] as const) {
    const { checkOrigin } = createAccess({ auth })
    expect(
      await thrownBy(() => checkOrigin(call({ headers: { origin }, allowedByApp: origin }))),
    ).toMatchObject({ code: 'permission' })
  }
})

test('with auth `anonymous`, only the Host header makes a page the same origin', async () => {
  const headers = { origin: 'https://evil.example', 'sec-fetch-site': 'same-origin' }
  const check = (auth: 'anonymous' | 'host' | 'keys', host?: string) =>
    thrownBy(() =>
      createAccess({ auth }).checkOrigin(call({ headers: { ...headers, ...(host && { host }) } })),
    )

  expect(await check('anonymous')).toMatchObject({ code: 'permission' })
  for (const auth of ['host', 'keys'] as const) expect(await check(auth)).toEqual({})
})

test('the rule of the admin API allows only pages of the same origin, whatever `origins` says', async () => {
  const { checkSameOrigin } = createAccess({ auth: 'host', origins: ['*'] })
  const check = (origin: string, from: From = {}) =>
    thrownBy(() => checkSameOrigin(call({ ...from, headers: { origin, host: 'localhost:3000' } })))

  expect(await check('http://localhost:3000')).toBeUndefined()
  expect(await check('https://a.example', { host: 'a.example' })).toBeUndefined()
  for (const from of [{}, { allowedByApp: 'https://a.example' }])
    expect(await check('https://a.example', from)).toMatchObject({ code: 'permission' })
})

test.each(['https://app.example.com', [7], {}])(
  'rejects origins that are no list of strings: %j',
  (origins) => {
    expect(() => createAccess({ origins: origins as string[] })).toThrow('Expected `origins` to be a list')
  },
)

test('wrong keys are limited by the address of the client', async () => {
  const { authorize } = createAccess({ auth: 'keys', maxFailedAuthentications: 1 })
  const attempt = async (from: From, secret = 'x') =>
    thrownBy(() => authorize(call({ ...from, headers: { 'x-api-key': secret } }), 'inference'))

  expect(await attempt({})).toMatchObject({ code: 'authentication' })
  expect(await attempt({})).toMatchObject({ code: 'rate_limit' })
  expect(await attempt({ clientAddress: '203.0.113.7' })).toMatchObject({ code: 'authentication' })
  expect(await attempt({}, 'the-secret')).toEqual(known['the-secret'])
})

test('with auth `keys`, the key in either header identifies the caller', async () => {
  const { authorize, auth } = createAccess({ auth: 'keys' })
  const from = (headers: Record<string, string>) => call({ address: '10.0.0.7', headers })

  expect(auth).toBe('keys')
  for (const headers of [
    { 'x-api-key': 'the-secret' },
    { authorization: 'Bearer the-secret' },
    { authorization: 'bearer  the-secret ' },
    { 'x-api-key': 'the-secret', authorization: 'Bearer the-secret' },
    { 'x-api-key': 'the-secret', authorization: 'Basic YTpi' },
  ])
    expect(await authorize(from(headers), 'inference')).toBe(known['the-secret'])
})

test('requires a key even from local calls and from callers that the app has authenticated', async () => {
  const { authorize } = createAccess({ auth: 'keys' })

  for (const headers of [
    {},
    { 'x-api-key': '' },
    { authorization: 'Basic YTpi' },
    { authorization: 'Bearer' },
  ])
    expect(
      await thrownBy(() => authorize(call({ headers, caller: { id: 'ada' } }), 'inference')),
    ).toMatchObject({
      code: 'authentication',
      message: expect.stringContaining('x-api-key'),
    })
})

test('rejects two different keys, even where both are valid', async () => {
  const { authorize } = createAccess({ auth: 'keys' })
  const headers = { 'x-api-key': 'the-secret', authorization: 'Bearer admin' }

  expect(await thrownBy(() => authorize(call({ headers }), 'inference'))).toMatchObject({
    code: 'authentication',
  })
})

test('a key has only its scopes: `admin` does not include `inference`', async () => {
  const { authorize } = createAccess({ auth: 'keys', scopes: ['inference', 'models', 'admin'] })
  const headers = { 'x-api-key': 'the-secret' }

  expect(await thrownBy(() => authorize(call({ headers }), 'admin'))).toMatchObject({ code: 'permission' })
  expect(
    await thrownBy(() => authorize(call({ headers: { 'x-api-key': 'admin' } }), 'inference')),
  ).toMatchObject({ code: 'permission' })
})

test('rejects a page of another origin, also with a key', async () => {
  const { checkOrigin } = createAccess({ auth: 'keys' })
  const headers = { origin: 'https://evil.example', 'x-api-key': 'the-secret' }

  expect(await thrownBy(() => checkOrigin(call({ headers })))).toMatchObject({ code: 'permission' })
})

test('rejects an unknown value of `auth`', () => {
  expect(() => createAccess({ auth: 'key' as 'host' })).toThrow(
    "Expected `auth` to be one of anonymous, host, keys, got 'key'",
  )
})
