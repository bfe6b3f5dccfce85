import { once } from 'node:events'
import type { IncomingMessage, RequestListener, ServerOptions, ServerResponse } from 'node:http'
import { createServer as createHttp2Server, connect as http2Connect } from 'node:http2'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { createLlm, type Llm, type LlmOptions, routesFor } from '@modelmount/core'
import { toNodeHandler } from '@modelmount/core/http'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import { llmRouter as koaRouter } from '@modelmount/koa'
import express from 'express'
import Koa from 'koa'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { fastifyHandler } from '../support/fastify.ts'
import { listen } from '../support/listen.ts'
import { nestHandler } from '../support/nest.ts'

type Mount = (llm: Llm) => RequestListener
const plainNode: Mount = (llm) => toNodeHandler(routesFor(), llm)
const mounts: readonly (readonly [name: string, mount: Mount])[] = [
  ['Express', (llm) => express().use(llmRouter(llm))],
  ['Nest', (llm) => nestHandler(llm)],
  ['Fastify', (llm) => fastifyHandler(llm)],
  ['Koa', (llm) => Object.assign(new Koa(), { silent: true }).use(koaRouter(llm).routes()).callback()],
  ['plain Node', plainNode],
]

/** More than the buffers of a connection hold. */
const answerBytes = 24 * 1024 ** 2
const stallTimeout = '1s'
/** A connection is closed after one to two stall timeouts. */
const patience = 10_000

interface Started {
  /** Opens a connection that reads nothing, and sends this text. */
  send(text: string): Promise<{ readonly client: Socket; readonly isClosedByServer: Promise<true> }>
}

async function start(mount: Mount, options: LlmOptions = {}, server: ServerOptions = {}): Promise<Started> {
  const llm = await createLlm({
    engine: scriptedEngine(Array<string>(24).fill('x'.repeat(answerBytes / 24))),
    outputBuffer: { perCaller: '1gb', total: '1gb', stallTimeout },
    ...options,
  })
  const listening = await listen(mount(llm), { requestTimeout: 0, ...server })
  onTestFinished(async () => {
    await listening.close()
    await llm.close()
  })
  return {
    send: async (text) => {
      const accepted = once(listening.server, 'connection')
      const { port } = listening.server.address() as AddressInfo
      const client = connect(port, '127.0.0.1').pause()
      client.on('error', () => {}).write(text)
      const [socket] = (await accepted) as [Socket]
      return { client, isClosedByServer: once(socket, 'close').then((): true => true) }
    },
  }
}

const post = (path: string, fields: object): string => {
  const body = JSON.stringify({ model: 'any', ...fields })
  return `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nanthropic-version: 2023-06-01\r\ncontent-length: ${body.length}\r\n\r\n${body}`
}
const messages = [{ role: 'user', content: 'Hi' }]
const chat = (stream: boolean): string => post('/v1/chat/completions', { stream, messages })

/** Reads a megabyte, pauses, and so on. Returns the number of bytes when the answer is complete. */
async function readSlowly(client: Socket): Promise<number> {
  const pauseMs = 150
  let bytes = 0
  let nextPause = 1_000_000
  for await (const chunk of client) {
    bytes += chunk.length
    if (bytes < nextPause) continue
    nextPause += 1_000_000
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
  return bytes
}

describe.concurrent.each(mounts)('through %s', (_name, mount) => {
  test('a client that reads nothing of a whole answer is closed', async () => {
    const { send } = await start(mount)

    const { client, isClosedByServer } = await send(chat(false))

    expect(await isClosedByServer).toBe(true)
    client.destroy()
  }, 30_000)

  test('a client that reads nothing of the tail of a stream is closed', async () => {
    // The socket takes all events at once, so the output buffer is empty.
    const { send } = await start(mount, {}, { highWaterMark: 2 * answerBytes })

    const { client, isClosedByServer } = await send(chat(true))

    expect(await isClosedByServer).toBe(true)
    client.destroy()
  }, 30_000)

  test('a client that does not end a body that is too large is closed', async () => {
    const { send } = await start(mount, { bodies: { stallTimeout: '1s' } })
    const { client, isClosedByServer } = await send(
      'POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000000\r\n\r\n{',
    )
    const isOver = drip(client)

    const answer = await textOf(client)

    expect(answer).toMatch(/^HTTP\/1\.1 413 /)
    expect(await isClosedByServer).toBe(true)
    isOver()
  }, 30_000)
})

describe.concurrent.each<[path: string, fields: object]>([
  ['/v1/messages', { messages, max_tokens: 1_000 }],
  ['/v1/responses', { input: 'Hi' }],
  ['/v1/completions', { prompt: 'Hi', max_tokens: 1_000 }],
  ['/api/chat', { messages }],
  ['/api/generate', { prompt: 'Hi' }],
])('a client that reads nothing of %s', (path, fields) => {
  test.each([
    ['a stream', true],
    ['a whole answer', false],
  ])(
    'is closed, for %s',
    async (_what, stream) => {
      const { send } = await start(plainNode)

      const { client, isClosedByServer } = await send(post(path, { ...fields, stream }))
      await isClosedByServer
      const answer = await textOf(client)

      // The connection of a complete answer, such as an error, is closed after it was idle.
      expect(answer.split('\r\n')[0]).toBe('HTTP/1.1 200 OK')
      expect(answer.length).toBeLessThan(answerBytes)
    },
    30_000,
  )
})

/** Sends a byte again and again. Returns a function that ends this. */
function drip(client: Socket): () => void {
  const timer = setInterval(() => client.write('x'), 20)
  return () => clearInterval(timer)
}

/** Reads until the connection is closed. */
async function textOf(client: Socket): Promise<string> {
  let text = ''
  client.on('data', (chunk) => {
    text += chunk
  })
  // `once` would reject at the reset of a connection.
  await new Promise((resolve) => client.resume().once('close', resolve))
  return text
}

test('a client that reads a whole answer slowly gets all of it', async () => {
  const { send } = await start(plainNode, {
    outputBuffer: { perCaller: '1gb', total: '1gb', stallTimeout: '2s' },
  })
  const begin = performance.now()

  const { client } = await send(chat(false).replace('\r\n', '\r\nconnection: close\r\n'))
  const bytes = await readSlowly(client)

  expect(bytes).toBeGreaterThan(answerBytes)
  expect(performance.now() - begin).toBeGreaterThan(2_500)
}, 30_000)

describe.concurrent('the rest of a body that no handler reads', () => {
  const byUser: Mount = (llm) =>
    toNodeHandler(routesFor(), llm, {
      authenticate: ({ headers }: IncomingMessage) =>
        headers['x-user'] ? { id: String(headers['x-user']) } : undefined,
    })

  test.each([
    ['without authentication', 401, 'POST /v1/chat/completions'],
    ['without a scope', 403, 'POST /api/pull'],
    ['for an unknown path', 404, 'POST /nowhere'],
    ['with a wrong method', 405, 'POST /api/tags'],
    ['that needs no body', 200, 'GET /api/version'],
  ])(
    'has a time limit in a request %s',
    async (_what, status, target) => {
      const { send } = await start(byUser, { auth: 'host', bodies: { stallTimeout: '200ms' } })
      const user = status === 401 ? '' : 'ann'
      const { client, isClosedByServer } = await send(
        `${target} HTTP/1.1\r\nhost: localhost\r\nx-user: ${user}\r\ncontent-length: 1000000\r\n\r\n{`,
      )
      const isOver = drip(client)

      const answer = await textOf(client)

      expect(answer.split('\r\n')[0]).toMatch(`HTTP/1.1 ${status} `)
      expect(await isClosedByServer).toBe(true)
      isOver()
    },
    patience,
  )

  test(
    'has a time limit in a request that a guard of Nest rejects',
    async () => {
      const { send } = await start(
        (llm) => nestHandler(llm, {}, (app) => app.useGlobalGuards({ canActivate: () => false })),
        { bodies: { stallTimeout: '200ms' } },
      )
      const { client, isClosedByServer } = await send(
        'POST /v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n{',
      )
      const isOver = drip(client)

      const answer = await textOf(client)

      expect(answer).toMatch(/^HTTP\/1\.1 403 .*"permission_error"/s)
      expect(await isClosedByServer).toBe(true)
      isOver()
    },
    patience,
  )

  test(
    'is read, so that its connection can be used again',
    async () => {
      const { send } = await start(byUser, { auth: 'host', bodies: { stallTimeout: '2s' } })
      const { client } = await send(
        `POST /nowhere HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n{`,
      )
      let text = ''
      client.on('data', (chunk) => {
        text += chunk
      })
      client.resume()
      await vi.waitFor(() => expect(text).toMatch(/^HTTP\/1\.1 404 /), patience)

      client.write('x'.repeat(999_999))
      await new Promise((resolve) => setTimeout(resolve, 2_500))
      client.write('GET /api/version HTTP/1.1\r\nhost: localhost\r\nx-user: ann\r\n\r\n')

      await vi.waitFor(() => expect(text).toContain('HTTP/1.1 200 '), patience)
      client.destroy()
    },
    3 * patience,
  )
})

test(
  'a connection can wait for its next request, and for a slow answer, longer than the limit of readers',
  async () => {
    // With 0, Node sets no timer of its own between two requests.
    const engine = scriptedEngine(['Hello', ' there'], { delayMs: 1_100 })
    const { send } = await start(plainNode, { engine }, { keepAliveTimeout: 0 })
    const { client } = await send(chat(false))
    const [first] = await once(client.resume(), 'data')

    await new Promise((resolve) => setTimeout(resolve, 1_500))
    client.write(chat(true))
    let second = ''
    for await (const chunk of client) {
      second += chunk
      if (second.includes('[DONE]')) break
    }

    expect(String(first)).toMatch(/^HTTP\/1\.1 200 /)
    expect(second).toContain(' there')
  },
  patience,
)

test(
  'the second of two requests of a connection is closed, too',
  async () => {
    const { send } = await start(plainNode)

    const { client, isClosedByServer } = await send(
      `GET /api/version HTTP/1.1\r\nhost: localhost\r\n\r\n${chat(false)}`,
    )

    expect(await isClosedByServer).toBe(true)
    client.destroy()
  },
  patience,
)

test(
  'a client that reads nothing, but sends empty lines, is closed, too',
  async () => {
    const { send } = await start(plainNode)
    const { client, isClosedByServer } = await send(chat(false))
    const timer = setInterval(() => client.write('\r\n'), 100)

    expect(await isClosedByServer).toBe(true)
    clearInterval(timer)
    client.destroy()
  },
  patience,
)

test.each(['1s', '1h'] as const)(
  'a shorter or equal timeout of the host app stays beside a limit of %s',
  async (limit) => {
    const timeoutMs = 1_000
    const { send } = await start(
      (llm) => {
        const handle = plainNode(llm)
        return (req, res) => {
          req.socket.setTimeout(timeoutMs)
          handle(req, res)
        }
      },
      { outputBuffer: { stallTimeout: limit } },
    )

    const { client, isClosedByServer } = await send(chat(false))

    expect(await isClosedByServer).toBe(true)
    client.destroy()
  },
  patience,
)

test(
  'a stream of HTTP/2 that is not read is closed, and others of its connection are served',
  async () => {
    const llm = await createLlm({
      engine: scriptedEngine('x'.repeat(1_000_000)),
      outputBuffer: { stallTimeout },
    })
    const handle = plainNode(llm)
    const server = createHttp2Server((req, res) =>
      handle(req as unknown as IncomingMessage, res as unknown as ServerResponse),
    )
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const session = http2Connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    const ask = (stream: boolean) => {
      const request = session.request({ ':method': 'POST', ':path': '/v1/chat/completions' })
      request.end(JSON.stringify({ model: 'any', stream, messages: [{ role: 'user', content: 'Hi' }] }))
      return request
    }

    const closed: Promise<unknown>[] = []
    server.on('stream', (stream) => closed.push(new Promise((resolve) => stream.once('close', resolve))))

    const unread = [ask(false), ask(true)]
    for (const request of unread) request.on('error', () => {}).pause()
    await vi.waitFor(() => expect(closed).toHaveLength(2))
    await Promise.all(closed)
    let bytes = 0
    for await (const chunk of ask(false)) bytes += chunk.length

    expect(bytes).toBeGreaterThan(1_000_000)
    session.destroy()
    await new Promise((resolve) => server.close(resolve))
    await llm.close()
  },
  patience,
)
