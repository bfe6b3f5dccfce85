import { expect, test } from 'vitest'
import { createAccess } from './access.ts'
import type { Caller } from './caller.ts'
import type { HttpRequest } from './http/message.ts'

interface From {
  readonly address?: string
  readonly caller?: Caller
  readonly headers?: Readonly<Record<string, string>>
}

const call = ({ address = '127.0.0.1', caller, headers = {} }: From = {}): HttpRequest => ({
  method: 'GET',
  path: '/',
  params: {},
  remoteAddress: address,
  caller,
  signal: new AbortController().signal,
  header: (name) => headers[name],
  query: () => undefined,
  json: async () => ({}),
  bytes: async function* () {},
})

const thrownBy = (attempt: () => unknown): unknown => {
  try {
    return attempt()
  } catch (error) {
    return error
  }
}

test('a direct call from this machine is anonymous, and may ask models', () => {
  const { callerOf } = createAccess({})

  expect(callerOf(call(), 'inference')).toEqual({ id: 'anonymous' })
  expect(thrownBy(() => callerOf(call(), 'models'))).toMatchObject({ code: 'permission' })
})

test('any other call is refused with a text that names the option, for the log, too', () => {
  const { callerOf } = createAccess({})

  for (const from of [{ address: '10.0.0.7' }, { headers: { 'x-forwarded-for': '10.0.0.7' } }]) {
    expect(thrownBy(() => callerOf(call(from), 'inference'))).toMatchObject({
      code: 'authentication',
      message: expect.stringContaining("auth: 'host'"),
      details: { setup: true },
    })
  }
})

test('a name in the Host header that is not this machine is refused', () => {
  const { callerOf } = createAccess({})

  expect(thrownBy(() => callerOf(call({ headers: { host: 'evil.example' } }), 'inference'))).toMatchObject({
    code: 'permission',
  })
})

test('where the app says who calls, only that counts', () => {
  const { callerOf } = createAccess({ auth: 'host' })
  const ada = { id: 'ada', scopes: ['inference', 'models'] as const }

  expect(callerOf(call({ address: '10.0.0.7', caller: ada }), 'models')).toBe(ada)
  expect(thrownBy(() => callerOf(call(), 'inference'))).toMatchObject({ code: 'authentication' })
  expect(thrownBy(() => callerOf(call({ caller: { id: 'guest', scopes: [] } }), 'inference'))).toMatchObject({
    code: 'permission',
  })
})

test('a caller that the app names may not come along where nobody is asked', () => {
  const { callerOf } = createAccess({})

  expect(callerOf(call({ caller: { id: 'admin', scopes: ['admin'] } }), 'inference')).toEqual({
    id: 'anonymous',
  })
})

test('who says nothing of scopes has those of the options', () => {
  const { callerOf } = createAccess({ scopes: ['inference', 'models'] })
  const { callerOf: callerOfApp } = createAccess({ auth: 'host', scopes: ['inference', 'models'] })

  expect(callerOf(call(), 'models')).toEqual({ id: 'anonymous' })
  expect(thrownBy(() => callerOf(call(), 'admin'))).toMatchObject({ code: 'permission' })
  expect(callerOfApp(call({ caller: { id: 'ada' } }), 'models')).toEqual({ id: 'ada' })
  expect(
    thrownBy(() => callerOfApp(call({ caller: { id: 'guest', scopes: ['inference'] } }), 'models')),
  ).toMatchObject({ code: 'permission' })
})

test('a scope that nobody knows is a mistake', () => {
  expect(() => createAccess({ scopes: ['all' as 'admin'] })).toThrow('Expected `scopes` to be some of')
})

test('a configured page may call, others may not, and the default pages are no longer there', () => {
  const { crossOrigin } = createAccess({ origins: ['https://app.example.com'] })
  const from = (origin: string) => call({ headers: { origin } })

  expect(crossOrigin(from('https://app.example.com'))).toMatchObject({
    'access-control-allow-origin': 'https://app.example.com',
  })
  expect(thrownBy(() => crossOrigin(from('http://localhost:5173')))).toMatchObject({
    code: 'permission',
    message: expect.stringContaining('origins'),
  })
})

test('where the app says who calls, pages are the affair of its own middleware', () => {
  const { crossOrigin } = createAccess({ auth: 'host' })

  expect(crossOrigin(call({ headers: { origin: 'https://anything.example' } }))).toEqual({})
})

test('another word for `auth` is a mistake in the set-up', () => {
  expect(() => createAccess({ auth: 'keys' as 'host' })).toThrow(
    "Expected `auth` to be 'anonymous' or 'host', got 'keys'",
  )
})
