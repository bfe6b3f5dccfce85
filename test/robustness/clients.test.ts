import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { createLlm, type Llm, routesFor } from '@modelmount/core'
import { type Engine, uncached } from '@modelmount/core/engine'
import { toNodeHandler } from '@modelmount/core/http'
import { type ScriptedEngine, scriptedEngine } from '@modelmount/core/testing'
import { llmRouter } from '@modelmount/express'
import { llmRouter as koaRouter } from '@modelmount/koa'
import express from 'express'
import Koa from 'koa'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { fastifyHandler } from '../support/fastify.ts'
import { fetchHandler } from '../support/fetch.ts'
import { nestHandler } from '../support/nest.ts'
import { until } from '../support/processes.ts'

const mounts: [name: string, mount: (llm: Llm) => RequestListener][] = [
  ['Express', (llm) => express().use(llmRouter(llm))],
  ['Nest', (llm) => nestHandler(llm)],
  ['Fastify', (llm) => fastifyHandler(llm)],
  ['Koa', (llm) => Object.assign(new Koa(), { silent: true }).use(koaRouter(llm).routes()).callback()],
  ['plain Node', (llm) => toNodeHandler(routesFor(), llm)],
  ['fetch', fetchHandler],
]

const body = (stream: boolean): string =>
  JSON.stringify({ model: 'any', stream, messages: [{ role: 'user', content: 'Hi' }] })

const head = (length: number, more = ''): string =>
  `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${length}\r\n${more}\r\n`

const call = (stream: boolean, more = ''): string => head(body(stream).length, more) + body(stream)

const listenersOf = (emitter: NodeJS.EventEmitter): number =>
  emitter.eventNames().reduce((sum, name) => sum + emitter.listenerCount(name), 0)

describe.each(mounts)('the %s adapter', (_name, mount) => {
  let engine: ScriptedEngine
  let server: Server
  let port: number

  beforeEach(async () => {
    engine = scriptedEngine(
      Array.from({ length: 2_000 }, (_, i) => ` word${i}`),
      { delayMs: 1 },
    )
    server = createServer(
      { requestTimeout: 300, connectionsCheckingInterval: 50 },
      mount(await createLlm({ engine })),
    )
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
  })

  afterEach(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })

  async function open(): Promise<Socket> {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    socket.on('error', () => {})
    await once(socket, 'connect')
    return socket
  }

  /** Reads until `enough` accepts the text or the server ends the connection. Returns the text. */
  async function read(socket: Socket, enough: (text: string) => boolean = () => false): Promise<string> {
    let text = ''
    for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
      text += chunk
      if (enough(text)) break
    }
    return text
  }

  const openSockets = (): number =>
    process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length

  const frames = (text: string): number => text.split('data: ').length - 1

  test('1,000 clients that disconnect after three tokens leave no calls, sockets or listeners behind', async () => {
    const vanish = async () => {
      const socket = await open()
      socket.write(call(true))
      await read(socket, (text) => frames(text) >= 4)
      socket.destroy()
    }
    const round = () => Promise.all(Array.from({ length: 200 }, vanish))
    const isQuiet = () => engine.running === 0 && openSockets() === 0
    await round()
    await until(isQuiet, 5_000)
    const before = process.getActiveResourcesInfo().length
    const listeners = listenersOf(server) + listenersOf(process)

    for (let i = 0; i < 5; i++) await round()
    await until(isQuiet, 5_000)

    expect(engine.requests).toHaveLength(1_200)
    expect(process.getActiveResourcesInfo().length).toBeLessThanOrEqual(before)
    expect(listenersOf(server) + listenersOf(process)).toBe(listeners)
    const socket = await open()
    socket.write(call(true))
    expect(await read(socket, (text) => frames(text) >= 4)).toContain('word1')
    socket.destroy()
  }, 60_000)

  test('a client that disconnects before its body is complete starts no call of the engine', async () => {
    const socket = await open()
    socket.write(head(1_000) + body(true))
    socket.destroy()

    await until(() => openSockets() === 0, 5_000)

    expect(engine.requests).toEqual([])
  })

  test('a client that disconnects while it waits for a whole answer ends the generation', async () => {
    const socket = await open()
    socket.write(call(false))
    await until(() => engine.running === 1, 5_000)

    socket.destroy()

    await until(() => engine.running === 0, 5_000)
  })

  test('a body that stops arriving gives a 408', async () => {
    const socket = await open()
    socket.write(head(1_000) + body(true))

    const answer = await read(socket)
    socket.destroy()

    expect(answer).toMatch(/^HTTP\/1.1 408 /)
    expect(engine.requests).toEqual([])
  })

  test('a body that arrives byte by byte is served', async () => {
    const socket = await open()
    socket.setNoDelay(true)
    socket.write(head(body(true).length))
    for (const byte of body(true)) {
      socket.write(byte)
      await new Promise(setImmediate)
    }

    const answer = await read(socket, (text) => frames(text) >= 3)
    socket.destroy()

    expect(answer).toContain('word0')
  })

  test('a client that half-closes its connection counts as disconnected', async () => {
    const socket = await open()
    socket.write(call(true))
    await read(socket, (text) => frames(text) >= 3)
    socket.end()

    expect(await read(socket)).not.toContain('word1999')
    await until(() => engine.running === 0, 5_000)

    socket.destroy()
  })

  test('a connection can be used again after an error response', async () => {
    const socket = await open()
    socket.write(`${head(1)}{`)
    const refused = await read(socket, (text) => text.includes('}}'))
    socket.write(call(true))
    const answer = await read(socket, (text) => frames(text) >= 3)
    socket.destroy()

    expect(refused).toMatch(/^HTTP\/1.1 400 /)
    expect(answer).toContain('word0')
  })

  test('a connection that is reset during an answer does not affect the next one', async () => {
    const broken = await open()
    broken.write(call(true))
    await read(broken, (text) => frames(text) >= 3)
    broken.resetAndDestroy()
    const socket = await open()
    socket.write(call(true))

    const answer = await read(socket, (text) => frames(text) >= 3)
    socket.destroy()

    expect(answer).toContain('word0')
    await until(() => engine.running === 0, 5_000)
  })

  test('for a client that does not read, generation pauses when the memory for its output is full, and its connection is closed', async () => {
    let pulled = 0
    let hasEnded = false
    const piece = 'x'.repeat(1_000)
    const flood: Engine = {
      ...scriptedEngine(''),
      async *generate({ model }) {
        try {
          yield { type: 'start', model, inputTokens: 1, reusedTokens: 0, ...uncached, fingerprint: 'fp' }
          for (; ; pulled++) yield { type: 'text', text: piece, tokens: 1 }
        } finally {
          hasEnded = true
        }
      },
    }
    const flooded = createServer(
      mount(await createLlm({ engine: flood, outputBuffer: { stallTimeout: '2s' } })),
    ).listen(0, '127.0.0.1')
    await once(flooded, 'listening')
    const socket = connect((flooded.address() as AddressInfo).port, '127.0.0.1').pause()
    socket.on('error', () => {})
    socket.write(call(true))

    let seen = -1
    while (pulled === 0 || pulled !== seen) {
      seen = pulled
      for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
    }
    const hadEnded = hasEnded
    await until(() => hasEnded, 10_000)

    expect([hadEnded, pulled < 30_000]).toEqual([false, true])
    await once(socket.resume(), 'close')
    flooded.close()
    await once(flooded, 'close')
  })
})
