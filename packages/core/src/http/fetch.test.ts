import { expect, test } from 'vitest'
import type { LlmError } from '../errors.ts'
import { type FetchHandlerOptions, toFetchHandler } from './fetch.ts'
import type { HttpRequest } from './message.ts'
import { json } from './respond.ts'
import type { Route, RouteTable } from './route.ts'

const table: RouteTable<{ greeting: string }> = {
  routes: [
    {
      method: 'POST',
      path: '/echo/*name',
      bodyLimit: 100,
      handle: async (request, { greeting }) =>
        json({
          greeting,
          name: request.params.name,
          kind: request.header('content-type'),
          x: request.query('x'),
          none: request.query('none'),
          body: await request.json().catch((error: Error) => error.message),
        }),
    },
  ],
  handleUnmatched: (request) => json({ path: request.path }, 404),
}

const handler = toFetchHandler(table, { greeting: 'hello' })
const echo = (body: string, headers: Record<string, string> = {}) =>
  handler(new Request('http://host/echo/a%2Fb/c?x=1', { method: 'POST', body, headers }))

test('a route gets its parameters, headers, body and context', async () => {
  const response = await echo('{"a":1}', { 'content-type': 'application/json' })

  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
  expect(await response.json()).toEqual({
    greeting: 'hello',
    name: 'a/b/c',
    kind: 'application/json',
    x: '1',
    body: { a: 1 },
  })
})

test('a body over the limit and broken JSON are errors', async () => {
  const tooLarge = await echo(JSON.stringify('x'.repeat(200)))
  const broken = await echo('{')

  expect(await tooLarge.json()).toMatchObject({ body: expect.stringContaining('larger than 100 bytes') })
  expect(await broken.json()).toMatchObject({ body: expect.stringContaining('not valid JSON') })
})

test('the table responds to unknown routes', async () => {
  const wrongMethod = await handler(new Request('http://host/echo/a'))
  const wrongPath = await handler(new Request('http://host/nope%ff'))

  expect(await wrongMethod.json()).toEqual({ path: '/echo/a' })
  expect(await wrongPath.json()).toEqual({ path: '/nope%ff' })
})

function streaming(frames: AsyncIterable<string>) {
  const stream = async () => ({ status: 200, headers: {}, body: frames })
  const routes = [{ method: 'GET' as const, path: '/stream', handle: stream }]
  return toFetchHandler({ ...table, routes }, { greeting: '' })(new Request('http://host/stream'))
}

test('a stream is pulled frame by frame', async () => {
  let pulled = 0
  const response = await streaming(
    (async function* () {
      for (; pulled < 100; pulled++) yield `${pulled} `
    })(),
  )
  const reader = response.body?.getReader()

  const first = await reader?.read()

  expect(new TextDecoder().decode(first?.value)).toBe('0 ')
  expect(pulled).toBeLessThan(5)
})

test('a reader that cancels closes the source', async () => {
  let closed = false
  const response = await streaming(
    (async function* () {
      try {
        for (;;) yield 'more '
      } finally {
        closed = true
      }
    })(),
  )
  const reader = response.body?.getReader()
  await reader?.read()

  await reader?.cancel()

  expect(closed).toBe(true)
})

async function* broken(): AsyncGenerator<string> {
  yield 'one'
  throw new Error('broken')
}

test.each([
  ['ends', async function* () {}, undefined],
  ['fails', broken, 'broken'],
] as const)('the signal of a request aborts when its stream %s', async (_how, framesOf, error) => {
  const signals: AbortSignal[] = []
  const handle = async ({ signal }: HttpRequest) => {
    signals.push(signal)
    return { status: 200, headers: {}, body: framesOf() }
  }
  const routes = [{ method: 'GET' as const, path: '/stream', handle }]
  const response = await toFetchHandler(
    { ...table, routes },
    { greeting: '' },
  )(new Request('http://host/stream'))
  const before = signals.map(({ aborted }) => aborted)

  const failure = await response.text().then(
    () => undefined,
    (cause: Error) => cause.message,
  )

  expect([before, failure]).toEqual([[false], error])
  expect(signals.map(({ aborted }) => aborted)).toEqual([true])
})

test.each([
  [{}, 'app.example:8443'],
  [{ host: 'inside' }, undefined],
])('with the headers %j, the host of the URL is %s', async (headers, host) => {
  const hosts: (string | undefined)[] = []
  const handle: Route<{ greeting: string }>['handle'] = async (request) => {
    hosts.push(request.host)
    return { status: 200, headers: {}, body: null }
  }
  const routes = [{ method: 'GET' as const, path: '/host', handle }]

  await toFetchHandler(
    { ...table, routes },
    { greeting: '' },
  )(new Request('https://app.example:8443/host', { headers }))

  expect(hosts).toEqual([host])
})

test('disconnect() breaks the stream, closes the source, and aborts the signal', async () => {
  let request: HttpRequest | undefined
  let closed = false
  async function* frames(): AsyncGenerator<string> {
    try {
      for (;;) yield 'more '
    } finally {
      closed = true
    }
  }
  const handle: Route<{ greeting: string }>['handle'] = async (received) => {
    request = received
    return { status: 200, headers: {}, body: frames() }
  }
  const routes = [{ method: 'GET' as const, path: '/stream', handle }]
  const response = await toFetchHandler(
    { ...table, routes },
    { greeting: '' },
  )(new Request('http://host/stream'))
  const reader = response.body?.getReader()
  await reader?.read()

  request?.disconnect?.()

  await expect(reader?.read()).rejects.toMatchObject({ name: 'AbortError' })
  expect(request?.signal.aborted).toBe(true)
  expect(closed).toBe(true)
})

test('the bytes of a body have no limit', async () => {
  const sizes = toFetchHandler<undefined>(
    {
      handleUnmatched: () => json({}, 404),
      routes: [
        {
          method: 'POST',
          path: '/size',
          bodyLimit: 100,
          handle: async (request) => {
            let sizeBytes = 0
            for await (const chunk of request.bytes()) sizeBytes += chunk.length
            return json({ sizeBytes })
          },
        },
      ],
    },
    undefined,
  )

  const response = await sizes(
    new Request('http://host/size', { method: 'POST', body: Buffer.alloc(1_000_000) }),
  )

  expect(await response.json()).toEqual({ sizeBytes: 1_000_000 })
})

test('callbacks get the second argument of the handler', async () => {
  const handle = async ({ authenticate, remoteAddress, httpVersion }: HttpRequest) =>
    json({ caller: await authenticate?.(), remoteAddress, httpVersion })
  const routes: Route<undefined>[] = [{ method: 'GET', path: '/', handle }]
  const options: FetchHandlerOptions<{ user: string; ip: string }> = {
    authenticate: (_request, { extra }) => ({ id: extra.user }),
    remoteAddress: (_request, { ip }) => ip,
    httpVersion: (_request, { ip }) => `of ${ip}`,
    fallback: (_request, { user }) => new Response(`app of ${user}`),
  }
  const handler = toFetchHandler({ ...table, routes }, undefined, options)
  const extra = { user: 'ann', ip: '10.0.0.1' }

  const found = await handler(at('/', 'GET'), extra)
  const passed = await handler(at('/app', 'GET'), extra)

  expect(await found.json()).toEqual({
    caller: { id: 'ann' },
    remoteAddress: '10.0.0.1',
    httpVersion: 'of 10.0.0.1',
  })
  expect(await passed.text()).toBe('app of ann')
})

test.each(['json', 'bytes', 'jsonBytes'] as const)(
  'a body that middleware has read is an error that names the cause: %s()',
  async (method) => {
    const read = async (request: HttpRequest) => {
      if (method === 'json') return request.json()
      for await (const _chunk of request[method]());
      return undefined
    }
    const handle = (request: HttpRequest) =>
      read(request).then(
        () => json('no error'),
        (error: LlmError) => json({ code: error.code, message: error.message }),
      )
    const routes: Route<undefined>[] = [{ method: 'POST', path: '/', handle }]
    const handler = toFetchHandler({ ...table, routes }, undefined)
    const request = new Request('http://host/', { method: 'POST', body: '{}' })
    await request.text()

    const response = await handler(request)

    expect(await response.json()).toEqual({
      code: 'invalid_request',
      message: expect.stringMatching(/consumed the request body .* before the body parser/),
    })
  },
)

const at = (path: string, method = 'POST'): Request => new Request(`http://host${path}`, { method })

test.each(['/llm', '/llm/'])(
  'with the prefix %s, the routes and the base URL are below it',
  async (prefix) => {
    const urls: (string | undefined)[] = []
    const routes: Route<undefined>[] = [
      {
        method: 'GET',
        path: '/models/:model',
        handle: async ({ params, path, baseUrl }) => {
          urls.push(baseUrl())
          return json({ params, path })
        },
      },
    ]
    const handle = toFetchHandler({ ...table, routes }, undefined, { prefix })

    const found = await handle(at('/llm/models/tiny', 'GET'))
    const method = await handle(at('/llm/models/tiny', 'PUT'))
    const unknown = await handle(at('/llm', 'GET'))

    expect(await found.json()).toEqual({ params: { model: 'tiny' }, path: '/models/tiny' })
    expect(urls).toEqual(['http://host/llm'])
    expect(await method.json()).toEqual({ path: '/models/tiny' })
    expect(await unknown.json()).toEqual({ path: '/' })
  },
)

test.each(['/', '/llmx/echo/a', '/x/llm/echo/a', '/LLM/echo/a'])(
  'with a prefix, %s is outside of it: 404, or the answer of the fallback',
  async (path) => {
    const fallback = ({ url }: Request): Response => new Response(`app: ${new URL(url).pathname}`)
    const alone = toFetchHandler(table, { greeting: '' }, { prefix: '/llm' })
    const guest = toFetchHandler(table, { greeting: '' }, { prefix: '/llm', fallback })

    const missing = await alone(at(path))

    expect([missing.status, await missing.text()]).toEqual([404, 'Not found. Expected a path below /llm.'])
    expect(await (await guest(at(path))).text()).toBe(`app: ${path}`)
  },
)

test('at the root, the fallback gets the request itself, and its errors are those of the handler', async () => {
  const given: Request[] = []
  const fallback = async (request: Request): Promise<Response> => {
    given.push(request)
    throw new Error('the app failed')
  }
  const guest = toFetchHandler(table, { greeting: '' }, { fallback })
  const request = at('/echo/a', 'GET')

  await expect(guest(request)).rejects.toThrow('the app failed')

  expect(given).toEqual([request])
})

test.each([
  [{ prefix: 'llm' }, "Expected `prefix` to be a path such as '/llm', without parameters, got 'llm'"],
  [{ prefix: '/llm?x' }, 'Expected `prefix` to be a path'],
  [{ prefix: '//llm' }, 'Expected `prefix` to be a path'],
  [{ prefix: '/:team/llm' }, "without parameters, got '/:team/llm'"],
  [{ prefix: '/llm/*' }, 'Expected `prefix` to be a path'],
  [{ prefix: '/{team}' }, 'Expected `prefix` to be a path'],
  [{ fallback: { fetch: () => new Response() } }, 'Expected `fallback` to be a function'],
  [{ remoteAddress: '127.0.0.1' }, 'Expected `remoteAddress` to be a function, got 127.0.0.1 (string)'],
  [{ httpVersion: 1.1 }, 'Expected `httpVersion` to be a function, got 1.1 (number)'],
  [{ authenticate: { id: 'ann' } }, 'Expected `authenticate` to be a function'],
])('the options %j throw a TypeError', (options, message) => {
  const create = () => toFetchHandler(table, { greeting: '' }, options as object)

  expect(create).toThrow(TypeError)
  expect(create).toThrow(message)
})
