/**
 * C-8: a few clients that send large bodies slowly hold memory and sockets that all callers need. Bodies, and
 * whole answers that are not read, have memory per caller and in total. A client that pauses is given up.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import type { IncomingMessage, RequestListener } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { createLlm, type Llm, type LlmOptions, routesFor } from '@modelmount/core'
import type { Engine } from '@modelmount/core/engine'
import { toNodeHandler } from '@modelmount/core/http'
import { scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import { llmRouter as koaRouter } from '@modelmount/koa'
import express from 'express'
import Koa from 'koa'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { internals } from '../../../packages/core/src/llm.ts'
import { emptyFolder } from '../../support/empty-folder.ts'
import { fetchHandler } from '../../support/fetch.ts'
import { listen } from '../../support/listen.ts'
import { nestHandler } from '../../support/nest.ts'

const soon = { timeout: 5_000, interval: 5 }
const kb = 1_024
const folder = emptyFolder()

type Mount = (llm: Llm) => RequestListener
const mounts: readonly (readonly [name: string, mount: Mount])[] = [
  ['Express', (llm) => express().use(llmRouter(llm))],
  ['Nest', (llm) => nestHandler(llm)],
  ['Koa', (llm) => Object.assign(new Koa(), { silent: true }).use(koaRouter(llm).routes()).callback()],
  ['plain Node', (llm) => toNodeHandler(routesFor(), llm)],
  ['fetch', fetchHandler],
]

interface Started {
  readonly url: string
  /** Sends the head of a request, without its body. */
  open(head: Head): Promise<Sender>
  /** Memory for bodies that is reserved now. */
  reservedBytes(): number
}

interface Head {
  readonly path?: string
  readonly user?: string
  /** Without it, the body is chunked. */
  readonly length?: number
}

interface Sender {
  readonly socket: Socket
  /** Resolves with all that the server has sent, when it has closed the connection. */
  readonly answer: Promise<string>
}

/** Starts a server without a time limit of its own, as `modelmount serve` does. */
async function start(options: LlmOptions, mount: Mount = mounts[3]?.[1] as Mount): Promise<Started> {
  const llm = await createLlm({ engine: scriptedEngine('Hello.'), models: folder, ...options })
  const { url, server, close } = await listen(mount(llm), { requestTimeout: 0 })
  onTestFinished(async () => {
    await close()
    await llm.close()
  })
  const open: Started['open'] = async ({ path = '/v1/chat/completions', user = 'ann', length }) => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
    const size = length === undefined ? 'transfer-encoding: chunked' : `content-length: ${length}`
    socket.write(`POST ${path} HTTP/1.1\r\nhost: localhost\r\nx-user: ${user}\r\n${size}\r\n\r\n`)
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    await once(socket, 'connect')
    // `once` would reject at the reset of a connection.
    const answer = new Promise<string>((resolve) => socket.once('close', () => resolve(text)))
    return { socket, answer }
  }
  return { url, open, reservedBytes: () => llm[internals].bodies.reservedBytes }
}

/** Requires a user in the header `x-user`. */
const byUser: Mount = (llm) =>
  toNodeHandler(routesFor(), llm, {
    authenticate: ({ headers }: IncomingMessage) =>
      headers['x-user'] ? { id: String(headers['x-user']), scopes: ['inference', 'models'] } : undefined,
  })
const users: LlmOptions = { auth: 'host', bodies: { maxBytes: '1mb', maxBytesPerCaller: '256kb' } }

/** A chat request of exactly this many bytes. */
function chatOf(bytes: number, stream = false): string {
  const sized = (content: string): string =>
    JSON.stringify({ model: 'tiny', stream, messages: [{ role: 'user', content }] })
  return sized('x'.repeat(bytes - sized('').length))
}

const ask = (url: string, user: string, bytes: number, path = '/v1/chat/completions'): Promise<Response> =>
  fetch(url + path, { method: 'POST', headers: { 'x-user': user }, body: chatOf(bytes) })

const statusOf = async (answer: Promise<Response>): Promise<number> => {
  const response = await answer
  await response.text()
  return response.status
}

describe.each(mounts)('through %s, a client that pauses in its body', (_name, mount) => {
  test.each([
    ['/v1/chat/completions', { error: { type: 'invalid_request_error', code: 'request_timeout' } }],
    ['/v1/messages', { type: 'error', error: { type: 'timeout_error' } }],
    ['/api/chat', { error: expect.stringContaining('sent less than 1024 bytes in 0.05 s') }],
  ])('of %s gets 408, and its connection ends', async (path, error) => {
    const { open } = await start({ bodies: { stallTimeout: '50ms' } }, mount)
    const { socket, answer } = await open({ path, length: 1_000 })
    socket.write('{"model":')

    const [head = '', body = ''] = (await answer).split('\r\n\r\n')

    expect(head).toMatch(/^HTTP\/1\.1 408 /)
    expect(head).toMatch(/^connection: close$/im)
    expect(JSON.parse(body.replace(/^[\da-f]+\r\n|\r\n0$/g, ''))).toMatchObject(error)
  })
})

test('a body that progresses is read, however long it takes', async () => {
  const { open } = await start({ bodies: { stallTimeout: '100ms' } })
  const body = chatOf(20 * kb)
  const { socket, answer } = await open({ length: 20 * kb })
  const startedAt = performance.now()
  for (let at = 0; at < 20 * kb; at += 2 * kb) {
    socket.write(body.slice(at, at + 2 * kb))
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  socket.once('data', () => socket.end())

  expect(await answer).toMatch(/^HTTP\/1\.1 200 /)
  expect(performance.now() - startedAt).toBeGreaterThan(150)
})

test('a client that sends one byte after the other gives up its memory', async () => {
  const { open, reservedBytes } = await start({ ...users, bodies: { stallTimeout: '200ms' } }, byUser)
  const { socket, answer } = await open({ length: 200 * kb })
  const drip = setInterval(() => socket.write('x'), 10)
  onTestFinished(() => clearInterval(drip))
  await vi.waitFor(() => expect(reservedBytes()).toBe(200 * kb), soon)

  expect(await answer).toMatch(/^HTTP\/1\.1 408 /)
  expect(reservedBytes()).toBe(0)
})

test.each([
  ['by their announced length', (length: number) => ({ length }), ''],
  ['by their chunks', () => ({}), `${(200 * kb).toString(16)}\r\n${'x'.repeat(200 * kb)}\r\n`],
])('slow bodies of one caller count %s, and the caller is told when to retry', async (_how, of, sent) => {
  const { url, open, reservedBytes } = await start(users, byUser)
  const { socket } = await open({ user: 'ann', ...of(200 * kb) })
  socket.write(sent)
  await vi.waitFor(() => expect(reservedBytes()).toBe(200 * kb), soon)

  const refused = await ask(url, 'ann', 100 * kb)
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
  expect(await refused.json()).toMatchObject({ error: { type: 'requests', code: 'rate_limit_exceeded' } })
  expect(await statusOf(ask(url, 'ann', 100 * kb, '/v1/messages'))).toBe(429)

  expect(await statusOf(ask(url, 'ann', 50 * kb))).toBe(200)
  expect(await statusOf(ask(url, 'bob', 100 * kb))).toBe(200)
  socket.destroy()
  await vi.waitFor(() => expect(reservedBytes()).toBe(0), soon)
  expect(await statusOf(ask(url, 'ann', 100 * kb))).toBe(200)
})

test('slow bodies of all callers of one tenant count together', async () => {
  const { url, open, reservedBytes } = await start(users, (llm) =>
    express().use(
      llmRouter(llm, { authenticate: ({ headers }) => ({ id: String(headers['x-user']), tenant: 'team' }) }),
    ),
  )
  await open({ user: 'key 1', length: 200 * kb })
  await vi.waitFor(() => expect(reservedBytes()).toBe(200 * kb), soon)

  expect(await statusOf(ask(url, 'key 2', 100 * kb))).toBe(429)
  expect(await statusOf(ask(url, 'key 2', 50 * kb))).toBe(200)
})

test('slow bodies of many callers leave room for a small request of another one', async () => {
  const { url, open, reservedBytes } = await start(users, byUser)
  const greedy = Array.from({ length: 12 }, (_, user) => open({ user: `greedy ${user}`, length: 200 * kb }))
  await Promise.all(greedy)
  await vi.waitFor(() => expect(reservedBytes()).toBe(800 * kb), soon)

  const refused = await ask(url, 'ann', 200 * kb, '/v1/messages')

  expect([refused.status, refused.headers.get('retry-after')]).toEqual([529, '1'])
  expect(await statusOf(ask(url, 'ann', 200 * kb))).toBe(503)
  expect(await refused.json()).toMatchObject({ error: { type: 'overloaded_error' } })
  expect(await statusOf(ask(url, 'ann', 1 * kb))).toBe(200)
})

test('a body larger than the memory of a caller is too large, and not worth a retry', async () => {
  const { url } = await start(users, byUser)

  const refused = await ask(url, 'ann', 257 * kb)

  expect([refused.status, refused.headers.get('retry-after')]).toEqual([413, null])
  expect(await refused.json()).toMatchObject({ error: { message: expect.stringContaining('262144 bytes') } })
})

test('a chat of 100 MB fits into the default memory of one caller', async () => {
  const { url } = await start({}, (llm) => express().use(llmRouter(llm, { bodyLimit: '128mb' })))

  expect(await statusOf(ask(url, 'ann', 100_000_000))).toBe(200)
})

test('a call keeps its memory while it waits and while it streams', async () => {
  const scripted = scriptedEngine('Hello there.')
  let answerAll = (): void => {}
  const gate = new Promise<void>((resolve) => {
    answerAll = resolve
  })
  const engine: Engine = {
    ...scripted,
    async *generate(...call) {
      for await (const event of scripted.generate(...call)) {
        yield event
        if (event.type === 'start') await gate
      }
    },
  }
  const { url, reservedBytes } = await start({ ...users, engine }, byUser)
  const streaming = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'x-user': 'ann' },
    body: chatOf(150 * kb, true),
  })

  expect(await statusOf(ask(url, 'ann', 150 * kb))).toBe(429)
  answerAll()
  await streaming.text()

  await vi.waitFor(() => expect(reservedBytes()).toBe(0), soon)
  expect(await statusOf(ask(url, 'ann', 150 * kb))).toBe(200)
})

test('a whole answer that is not read counts for its caller, until the connection is closed', async () => {
  const mb = 1_024 * kb
  const { url, open, reservedBytes } = await start(
    {
      ...users,
      engine: scriptedEngine(Array<string>(24).fill('x'.repeat(mb))),
      outputBuffer: { stallTimeout: '1s' },
    },
    byUser,
  )
  const { socket } = await open({ length: kb })
  socket.pause().write(chatOf(kb))
  await vi.waitFor(() => expect(reservedBytes()).toBeGreaterThan(20 * mb), soon)

  const refused = await ask(url, 'ann', kb)
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
  expect(await statusOf(ask(url, 'bob', kb))).toBe(200)

  await vi.waitFor(() => expect(reservedBytes()).toBe(0), { ...soon, timeout: 10_000 })
  expect(await statusOf(ask(url, 'ann', kb))).toBe(200)
  socket.destroy()
})

test('a body that the parser of the app has read does not count', async () => {
  const parsing = (llm: Llm) => {
    const authenticate = () => ({ id: 'ann' })
    return express().use(express.json({ limit: '1mb' }), llmRouter(llm, { authenticate }))
  }
  const { url } = await start(users, parsing)

  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: chatOf(300 * kb),
  })

  expect(response.status).toBe(200)
})

test('a client that is not authenticated is rejected before its body arrives', async () => {
  const { open, reservedBytes } = await start(users, byUser)
  const { socket } = await open({ user: '', length: 200 * kb })

  const [head] = await once(socket, 'data')

  expect(String(head)).toMatch(/^HTTP\/1\.1 401 /)
  expect(reservedBytes()).toBe(0)
  socket.destroy()
})

describe('an upload', () => {
  const addressOf = (bytes: Uint8Array): string =>
    `/api/blobs/sha256:${createHash('sha256').update(bytes).digest('hex')}`

  const blobFiles = (): readonly string[] =>
    existsSync(`${folder}/blobs`) ? readdirSync(`${folder}/blobs`) : []

  test('counts its buffers only, and may be larger than all memory for bodies', async () => {
    const { url } = await start(users, byUser)
    const bytes = new Uint8Array(5_000_000).fill(1)

    const response = await fetch(url + addressOf(bytes), {
      method: 'POST',
      headers: { 'x-user': 'ann' },
      body: bytes,
    })

    expect(response.status).toBe(201)
  })

  test('takes part in the memory of its caller while it is sent', async () => {
    const { url, open, reservedBytes } = await start(users, byUser)
    const bytes = new Uint8Array(1_000_000).fill(2)
    const { socket } = await open({ path: addressOf(bytes), length: bytes.length })
    socket.write(bytes.subarray(1))
    await vi.waitFor(() => expect(reservedBytes()).toBe(128 * kb), soon)

    expect(await statusOf(ask(url, 'ann', 150 * kb))).toBe(429)
    expect(await statusOf(ask(url, 'ann', 100 * kb))).toBe(200)
    socket.write(bytes.subarray(0, 1))
    const [head] = await once(socket, 'data')

    expect(String(head)).toMatch(/^HTTP\/1\.1 201 /)
    socket.destroy()
    expect(await statusOf(ask(url, 'ann', 150 * kb))).toBe(200)
  })

  test('that stalls ends with 408 and leaves no file', async () => {
    const own: LlmOptions = { ...users, bodies: { stallTimeout: '50ms' } }
    const { open } = await start(own, byUser)
    const bytes = new Uint8Array(1_000_000).fill(3)
    const before = blobFiles()
    const { socket, answer } = await open({ path: addressOf(bytes), length: bytes.length })
    socket.write(bytes.subarray(1))

    expect(await answer).toMatch(/^HTTP\/1\.1 408 /)
    expect(blobFiles()).toEqual(before)
  })
})
