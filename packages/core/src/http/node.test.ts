import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, request, type Server } from 'node:http'
import { createServer as createHttp2Server, connect as http2Connect } from 'node:http2'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { LlmError } from '../errors.ts'
import type { HttpRequest, HttpResponse } from './message.ts'
import { readNodeRequest, toNodeHandler, writeNodeResponse } from './node.ts'
import type { Route, RouteTable } from './route.ts'

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
})

/** Starts a server on the loopback address and returns its URL. */
async function listen(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** An event that happens once, with a promise to wait for the event. */
function happening(): { happened: Promise<void>; happen: () => void } {
  let happen: () => void = () => {}
  const happened = new Promise<void>((resolve) => {
    happen = resolve
  })
  return { happened, happen: () => happen() }
}

/** Calls `request.json()` and returns its result or its error. */
async function outcome(call: HttpRequest): Promise<unknown> {
  try {
    return { read: await call.json() }
  } catch (error) {
    const { code, message } = LlmError.from(error)
    return { code, message }
  }
}

/** Sends a body and returns the JSON response. */
const post = async (url: string, body: string): Promise<unknown> =>
  (await fetch(url, { method: 'POST', body })).json()

test('a request has its method, path, params and headers', async () => {
  const calls: HttpRequest[] = []
  const url = await listen((req, res) => {
    calls.push(readNodeRequest(req, res, { path: '/v1/models/a/b', params: { model: ['a', 'b'] } }))
    res.end()
  })

  await fetch(`${url}/llm/v1/models/a/b?x=1%202&x=3&empty=`, { headers: { Authorization: 'Bearer x' } })

  const [call] = calls
  expect(call).toMatchObject({ method: 'GET', path: '/v1/models/a/b', params: { model: 'a/b' } })
  expect(call?.header('authorization')).toBe('Bearer x')
  expect(call?.header('x-none')).toBeUndefined()
  expect(call?.headerNames()).toEqual(expect.arrayContaining(['authorization', 'host']))
  expect(call?.httpVersion).toBe('1.1')
  expect(call?.query('x')).toBe('1 2')
  expect(call?.query('empty')).toBe('')
  expect(call?.query('none')).toBeUndefined()
})

test('an unread body is read', async () => {
  const url = await listen(async (req, res) => {
    res.end(JSON.stringify(await outcome(readNodeRequest(req, res, { path: '/' }))))
  })

  expect(await post(url, '{"n":1}')).toEqual({ read: { n: 1 } })
})

test('the result of an earlier body parser is used', async () => {
  const url = await listen(async (req, res) => {
    let text = ''
    for await (const chunk of req) text += chunk
    const call = readNodeRequest(req, res, { path: '/', parsedBody: JSON.parse(text) })
    res.end(JSON.stringify(await outcome(call)))
  })

  expect(await post(url, '{"n":1}')).toEqual({ read: { n: 1 } })
})

test('a falsy parsed body is used', async () => {
  const url = await listen(async (req, res) => {
    for await (const _chunk of req);
    const call = readNodeRequest(req, res, { path: '/', parsedBody: null })
    res.end(JSON.stringify(await outcome(call)))
  })

  expect(await post(url, 'null')).toEqual({ read: null })
})

test('a parsed body is ignored while the stream is unread', async () => {
  const url = await listen(async (req, res) => {
    const call = readNodeRequest(req, res, { path: '/', parsedBody: {} })
    res.end(JSON.stringify(await outcome(call)))
  })

  expect(await post(url, '{"n":1}')).toEqual({ read: { n: 1 } })
})

test.each([
  ['a text', '{"n":1}'],
  ['a buffer', Buffer.from('{"n":1}')],
])('a body that an earlier body parser stored as %s is parsed', async (_what, parsedBody) => {
  const url = await listen(async (req, res) => {
    for await (const _chunk of req);
    res.end(JSON.stringify(await outcome(readNodeRequest(req, res, { path: '/', parsedBody }))))
  })

  expect(await post(url, '{"n":1}')).toEqual({ read: { n: 1 } })
})

test('a consumed body without a parsed one is rejected with an explanation', async () => {
  const url = await listen(async (req, res) => {
    for await (const _chunk of req);
    res.end(JSON.stringify(await outcome(readNodeRequest(req, res, { path: '/' }))))
  })

  expect(await post(url, '{"n":1}')).toEqual({
    code: 'invalid_request',
    message:
      'Earlier middleware consumed the request body and did not keep it. In the app, mount the routes before the body parser. In Nest, set bodyParser to false.',
  })
})

test.each([
  ['that leaves', (socket: Socket) => socket.destroy()],
  ['that stops sending', (socket: Socket) => socket.end()],
])('a body cut short by a client %s is a client error', async (_what, cut) => {
  const arrived = happening()
  const settled = happening()
  const outcomes: unknown[] = []
  const url = await listen(async (req, res) => {
    const read = outcome(readNodeRequest(req, res, { path: '/' }))
    req.once('data', arrived.happen)
    outcomes.push(await read)
    settled.happen()
  })
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"n":1}')
  await arrived.happened

  cut(socket)
  await settled.happened

  expect(outcomes).toEqual([
    { code: 'invalid_request', message: 'The request body ended before it was complete.' },
  ])
})

test('the limit of the route applies to its body', async () => {
  const url = await listen(async (req, res) => {
    const call = readNodeRequest(req, res, { path: '/', bodyLimit: '1kb' })
    res.end(JSON.stringify(await outcome(call)))
  })

  const fits = await post(url, JSON.stringify('x'.repeat(1_022)))
  const tooLarge = await post(url, JSON.stringify('x'.repeat(1_023)))

  expect(fits).toEqual({ read: 'x'.repeat(1_022) })
  expect(tooLarge).toMatchObject({ code: 'too_large' })
})

/** Reads the raw body of a request and returns its size or the error. */
async function sizeOf(call: HttpRequest): Promise<unknown> {
  try {
    let sizeBytes = 0
    for await (const chunk of call.bytes()) sizeBytes += chunk.length
    return { sizeBytes }
  } catch (error) {
    const { code, message } = LlmError.from(error)
    return { code, message }
  }
}

test('the bytes of a body have no limit', async () => {
  const url = await listen(async (req, res) => {
    const call = readNodeRequest(req, res, { path: '/', bodyLimit: '1kb' })
    res.end(JSON.stringify(await sizeOf(call)))
  })

  expect(await post(url, 'x'.repeat(5_000_000))).toEqual({ sizeBytes: 5_000_000 })
})

test('bytes are read only when they are pulled', async () => {
  const arrived = happening()
  const sockets: Socket[] = []
  const url = await listen(async (req, res) => {
    sockets.push(req.socket)
    await readNodeRequest(req, res, { path: '/' }).bytes()[Symbol.asyncIterator]().next()
    arrived.happen()
  })
  const sender = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {})
  sender.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 50000000\r\n\r\n')
  sender.write(Buffer.alloc(50_000_000))
  await arrived.happened

  const taken = (): number => sockets[0]?.bytesRead ?? 0
  for (let before = 0, still = 0; still < 10; before = taken()) {
    await new Promise((resolve) => setTimeout(resolve, 2))
    still = taken() === before ? still + 1 : 0
  }

  expect(taken()).toBeLessThan(5_000_000)
})

test('a handler that stops reading can still respond', async () => {
  const url = await listen(async (req, res) => {
    for await (const chunk of readNodeRequest(req, res, { path: '/' }).bytes()) {
      res.end(JSON.stringify({ isSome: chunk.length > 0 }))
      break
    }
  })

  expect(await post(url, 'x'.repeat(5_000_000))).toEqual({ isSome: true })
})

test('the bytes that an earlier body parser has kept are used', async () => {
  const kept: readonly unknown[] = [Buffer.from('four'), undefined, {}, 'four']
  const outcomes: unknown[] = []
  for (const parsedBody of kept) {
    const url = await listen(async (req, res) => {
      for await (const _chunk of req);
      res.end(JSON.stringify(await sizeOf(readNodeRequest(req, res, { path: '/', parsedBody }))))
    })
    outcomes.push(await post(url, 'four'))
  }

  const refused = {
    code: 'invalid_request',
    message:
      'An earlier body parser consumed the request body and did not keep its bytes. In the app, mount the routes before the body parser. In Nest, set bodyParser to false.',
  }
  expect(outcomes).toEqual([{ sizeBytes: 4 }, refused, refused, refused])
})

test('a body that ends early because the client disconnects is an error', async () => {
  const arrived = happening()
  const settled = happening()
  const outcomes: unknown[] = []
  const url = await listen(async (req, res) => {
    const read = sizeOf(readNodeRequest(req, res, { path: '/' }))
    req.once('readable', arrived.happen)
    outcomes.push(await read)
    settled.happen()
  })
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nfour')
  await arrived.happened

  socket.destroy()
  await settled.happened

  expect(outcomes).toEqual([
    { code: 'invalid_request', message: 'The request body ended before it was complete.' },
  ])
})

test('a complete response is sent with its status and headers', async () => {
  const url = await listen((_req, res) => {
    void writeNodeResponse({ status: 418, headers: { 'x-tea': 'yes' }, body: 'short and stout' }, res)
  })

  const response = await fetch(url)

  expect(response.status).toBe(418)
  expect(response.headers.get('x-tea')).toBe('yes')
  expect(response.headers.get('content-length')).toBe('15')
  expect(await response.text()).toBe('short and stout')
})

test('a response without a body is sent', async () => {
  const url = await listen((_req, res) => {
    void writeNodeResponse({ status: 204, headers: {}, body: null }, res)
  })

  const response = await fetch(url)

  expect(response.status).toBe(204)
  expect(await response.text()).toBe('')
})

test('headers of the host stay, unless the response overrides them', async () => {
  const url = await listen((_req, res) => {
    res.setHeader('access-control-allow-origin', '*')
    res.setHeader('cache-control', 'private')
    void writeNodeResponse({ status: 200, headers: { 'cache-control': 'no-cache' }, body: '' }, res)
  })

  const { headers } = await fetch(url)

  expect(headers.get('access-control-allow-origin')).toBe('*')
  expect(headers.get('cache-control')).toBe('no-cache')
})

test('frames are sent one by one, and the headers before the first frame', async () => {
  const first = happening()
  const second = happening()
  async function* frames(): AsyncGenerator<string> {
    await first.happened
    yield 'one '
    await second.happened
    yield 'zwölf'
  }
  const url = await listen((_req, res) => {
    void writeNodeResponse({ status: 200, headers: { 'x-stream': 'yes' }, body: frames() }, res)
  })

  const response = await fetch(url)
  first.happen()
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const one = await reader.read()
  second.happen()
  const two = await reader.read()

  expect(response.headers.get('x-stream')).toBe('yes')
  expect(Buffer.from(one.value ?? []).toString()).toBe('one ')
  expect(Buffer.from(two.value ?? []).toString()).toBe('zwölf')
  expect((await reader.read()).done).toBe(true)
})

test('the signal also aborts when the response is finished', async () => {
  const closed = happening()
  const signals: AbortSignal[] = []
  const url = await listen((req, res) => {
    signals.push(readNodeRequest(req, res, { path: '/' }).signal)
    res.on('close', closed.happen)
    void writeNodeResponse({ status: 200, headers: {}, body: 'done' }, res)
  })

  await (await fetch(url)).text()
  await closed.happened

  expect(signals.map(({ aborted }) => aborted)).toEqual([true])
})

test('the signal aborts when the client disconnects before the response', async () => {
  const arrived = happening()
  const aborted = happening()
  const url = await listen((req, res) => {
    readNodeRequest(req, res, { path: '/' }).signal.addEventListener('abort', aborted.happen)
    arrived.happen()
  })
  const req = request(url).on('error', () => {})
  req.end()
  await arrived.happened

  req.destroy()

  await expect(aborted.happened).resolves.toBeUndefined()
})

test('the signal is aborted if the client has already disconnected', async () => {
  const left = happening()
  const signals: AbortSignal[] = []
  const arrived = happening()
  const url = await listen((req, res) => {
    arrived.happen()
    res.once('close', () => {
      signals.push(readNodeRequest(req, res, { path: '/' }).signal)
      left.happen()
    })
  })
  const req = request(url).on('error', () => {})
  req.end()
  await arrived.happened

  req.destroy()
  await left.happened

  expect(signals.map(({ aborted }) => aborted)).toEqual([true])
})

test('a client that disconnects mid-stream aborts the signal and ends the frames without an error', async () => {
  const ended = happening()
  const log: string[] = []
  let written: Promise<void> | undefined
  const url = await listen((req, res) => {
    const { signal } = readNodeRequest(req, res, { path: '/' })
    signal.addEventListener('abort', () => log.push('aborted'))
    async function* frames(): AsyncGenerator<string> {
      try {
        for (;;) {
          yield 'frame\n'
          await new Promise((resolve) => setTimeout(resolve, 1))
        }
      } finally {
        log.push('closed')
        ended.happen()
      }
    }
    written = writeNodeResponse({ status: 200, headers: {}, body: frames() }, res)
  })
  const req = request(url)
  req.end()
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  await once(res, 'data')

  req.destroy()
  await ended.happened

  expect(log).toEqual(['aborted', 'closed'])
  await expect(written).resolves.toBeUndefined()
})

test('frames pause when the client stops reading, and end when it disconnects', async () => {
  const ended = happening()
  let made = 0
  const url = await listen((_req, res) => {
    async function* frames(): AsyncGenerator<string> {
      try {
        for (;;) {
          made++
          yield 'x'.repeat(1_000_000)
        }
      } finally {
        ended.happen()
      }
    }
    void writeNodeResponse({ status: 200, headers: {}, body: frames() }, res)
  })
  const socket = connect(Number(new URL(url).port), '127.0.0.1').pause()
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  // Waits until the buffers of both sides are full and no more frames are created.
  for (let before = 0, still = 0; still < 10; before = made) {
    await new Promise((resolve) => setTimeout(resolve, 2))
    still = made > 0 && made === before ? still + 1 : 0
  }

  socket.destroy()
  await ended.happened

  expect(made).toBeLessThan(100)
})

test('response headers that the host app has set can be read, also repeated ones', async () => {
  const read: (string | undefined)[] = []
  const url = await listen((req, res) => {
    res.setHeader('X-One', 1).setHeader('X-Two', ['a', 'b'])
    const { responseHeader } = readNodeRequest(req, res, { path: '/' })
    read.push(...['x-one', 'x-two', 'x-none'].map((name) => responseHeader?.(name)))
    res.end()
  })

  await fetch(url)

  expect(read).toEqual(['1', 'a, b', undefined])
})

test('the host of an HTTP/2 request is a header like that of HTTP/1', async () => {
  const hosts: (string | undefined)[] = []
  const server = createHttp2Server((req, res) => {
    const request = readNodeRequest(req as never, res as never, { path: '/' })
    hosts.push(request.header('host'))
    res.end()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const session = http2Connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)

  await once(session.request({ ':authority': 'evil.example:80' }).resume(), 'end')
  await new Promise<void>((resolve) => session.close(resolve))
  await new Promise((resolve) => server.close(resolve))

  expect(hosts).toEqual(['evil.example:80'])
})

test('disconnect() closes the connection of a client that does not read, and ends the frames', async () => {
  const arrived = happening()
  const ended = happening()
  const requests: HttpRequest[] = []
  const url = await listen((req, res) => {
    async function* frames(): AsyncGenerator<string> {
      try {
        for (;;) {
          yield 'x'.repeat(1_000_000)
          arrived.happen()
        }
      } finally {
        ended.happen()
      }
    }
    requests.push(readNodeRequest(req, res, { path: '/' }))
    void writeNodeResponse({ status: 200, headers: {}, body: frames() }, res)
  })
  const socket = connect(Number(new URL(url).port), '127.0.0.1').pause()
  socket.on('error', () => {})
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await arrived.happened

  requests[0]?.disconnect?.()
  await ended.happened
  await once(socket.resume(), 'close')

  expect(requests[0]?.signal.aborted).toBe(true)
})

test('frames end if the client disconnected before the first frame', async () => {
  const arrived = happening()
  const ended = happening()
  let written: Promise<void> | undefined
  const url = await listen((_req, res) => {
    arrived.happen()
    const body: AsyncIterableIterator<string> = {
      next: async () => ({ value: 'frame', done: false }),
      return: async () => {
        ended.happen()
        return { value: undefined, done: true }
      },
      [Symbol.asyncIterator]() {
        return this
      },
    }
    res.once('close', () => {
      written = writeNodeResponse({ status: 200, headers: {}, body }, res)
    })
  })
  const req = request(url).on('error', () => {})
  req.end()
  await arrived.happened

  req.destroy()
  await ended.happened

  await expect(written).resolves.toBeUndefined()
})

test('an error in the frames rejects, and the client sees a broken response', async () => {
  async function* frames(): AsyncGenerator<string> {
    yield 'frame'
    throw new Error('could not be rendered')
  }
  const written: Promise<void>[] = []
  const url = await listen((_req, res) => {
    const writing = writeNodeResponse({ status: 200, headers: {}, body: frames() }, res)
    writing.catch(() => {})
    written.push(writing)
  })

  const text = fetch(url).then((response) => response.text())

  await expect(text).rejects.toThrow()
  await expect(written[0]).rejects.toThrow('could not be rendered')
})

const say = (value: unknown): HttpResponse => ({ status: 200, headers: {}, body: JSON.stringify(value) })
const route = (
  method: Route<string>['method'],
  path: string,
  handle?: Route<string>['handle'],
): Route<string> => ({
  method,
  path,
  handle: handle ?? (async ({ params }, context) => say({ path, params, context })),
})
const tableOf = (...routes: Route<string>[]): RouteTable<string> => ({
  routes,
  handleUnmatched: ({ method, path }) => ({ ...say({ method, path }), status: 404 }),
})

test('a request reaches its route with params and context, whatever its query', async () => {
  const url = await listen(toNodeHandler(tableOf(route('GET', '/models/*model')), 'ctx'))

  const response = await fetch(`${url}/models/team/tiny%20x?a=/models/other`)

  expect(response.status).toBe(200)
  expect(await response.json()).toEqual({
    path: '/models/*model',
    params: { model: 'team/tiny x' },
    context: 'ctx',
  })
})

test('the table responds to unknown paths and methods', async () => {
  const url = await listen(toNodeHandler(tableOf(route('GET', '/models')), 'ctx'))

  const unknown = await fetch(`${url}/other?x=1`)
  const wrong = await fetch(`${url}/models`, { method: 'POST', body: '{}' })

  expect([unknown.status, await unknown.json()]).toEqual([404, { method: 'GET', path: '/other' }])
  expect([wrong.status, await wrong.json()]).toEqual([404, { method: 'POST', path: '/models' }])
})

test('with a prefix, the routes are below it, and requests outside of it get a 404', async () => {
  const bases: (string | undefined)[] = []
  const models = route('GET', '/models', async ({ path, baseUrl }) => {
    bases.push(baseUrl())
    return say({ path })
  })
  const url = await listen(toNodeHandler(tableOf(models), 'ctx', { prefix: '/llm/' }))

  const found = await fetch(`${url}/llm/models?x=/y`)
  const wrong = await fetch(`${url}/llm/models`, { method: 'POST', body: '{}' })
  const home = await fetch(`${url}/llm?x`)
  const outside = await fetch(`${url}/models`)

  expect(await found.json()).toEqual({ path: '/models' })
  expect(bases).toEqual([`${url}/llm`])
  expect(await wrong.json()).toEqual({ method: 'POST', path: '/models' })
  expect(await home.json()).toEqual({ method: 'GET', path: '/' })
  expect([outside.status, await outside.text()]).toEqual([404, 'Not found. Expected a path below /llm.'])
})

test('the fallback gets requests outside of the prefix, with their whole URL', async () => {
  const fallback: RequestListener = (req, res) => res.end(`app: ${req.url}`)
  const url = await listen(
    toNodeHandler(tableOf(route('GET', '/models')), 'ctx', { prefix: '/llm', fallback }),
  )

  expect(await (await fetch(`${url}/llmx?y=1`)).text()).toBe('app: /llmx?y=1')
  expect((await fetch(`${url}/llm/nope`)).status).toBe(404)
})

test('an error that the fallback throws is not answered with 500 by the handler', () => {
  const fallback: RequestListener = () => {
    throw new Error('the app failed')
  }
  const handler = toNodeHandler(tableOf(route('GET', '/models')), 'ctx', { fallback })

  expect(() => handler({ method: 'GET', url: '/' } as IncomingMessage, {} as never)).toThrow('the app failed')
})

test.each([
  [{ prefix: 'llm' }, "Expected `prefix` to be a path such as '/llm', without parameters, got 'llm'"],
  [{ fallback: 'app' }, 'Expected `fallback` to be a function, got app (string)'],
  [{ path: '/llm' }, 'Unknown option `path`'],
])('the options %j throw a TypeError', (options, message) => {
  const create = () => toNodeHandler(tableOf(), 'ctx', options as object)

  expect(create).toThrow(TypeError)
  expect(create).toThrow(message)
})

test('a target without a slash, such as that of `OPTIONS *`, is an unknown path', async () => {
  const url = await listen(toNodeHandler(tableOf(route('GET', '/models')), 'ctx'))
  const call = request(url, { method: 'OPTIONS', path: '*' }).end()

  const [response] = (await once(call, 'response')) as [IncomingMessage]

  expect(response.statusCode).toBe(404)
  response.resume()
})

test('a path that cannot be decoded matches no route', async () => {
  const url = await listen(toNodeHandler(tableOf(route('GET', '/models/:model')), 'ctx'))

  const response = await fetch(`${url}/models/%E0%A4%A`)

  expect(response.status).toBe(404)
})

test('HEAD gets a response without a body', async () => {
  const url = await listen(toNodeHandler(tableOf(route('GET', '/models')), 'ctx'))

  const response = await fetch(`${url}/models`, { method: 'HEAD' })

  expect(response.status).toBe(200)
  expect(await response.text()).toBe('')
})

test('a route can have its own body limit', async () => {
  const echo: Route<string>['handle'] = async (call) => say(await outcome(call))
  const small: Route<string> = { ...route('POST', '/small', echo), bodyLimit: 4 }
  const url = await listen(toNodeHandler(tableOf(small, route('POST', '/large', echo)), 'ctx'))

  expect(await post(`${url}/small`, '12345')).toMatchObject({ code: 'too_large' })
  expect(await post(`${url}/large`, '12345')).toEqual({ read: 12_345 })
})

test('a route that rejects responds with 500 and no body, and other routes still work', async () => {
  const broken = route('GET', '/broken', async () => {
    throw new Error('never thrown by a dialect')
  })
  const url = await listen(toNodeHandler(tableOf(broken, route('GET', '/fine')), 'ctx'))

  const failed = await fetch(`${url}/broken`)

  expect([failed.status, await failed.text()]).toEqual([500, ''])
  expect((await fetch(`${url}/fine`)).status).toBe(200)
})

test('if earlier middleware has responded, the response is dropped and its body closed', async () => {
  let closed = false
  const frames = {
    [Symbol.asyncIterator]: () => ({
      next: async () => ({ value: 'late', done: false }),
      return: async () => {
        closed = true
        return { value: undefined, done: true as const }
      },
    }),
  }
  const url = await listen((_req, res) => {
    res.writeHead(503).end('too slow')
    void writeNodeResponse({ status: 200, headers: { 'x-late': 'yes' }, body: frames }, res)
  })

  const response = await fetch(url)

  expect(response.status).toBe(503)
  expect(await response.text()).toBe('too slow')
  expect(closed).toBe(true)
})
