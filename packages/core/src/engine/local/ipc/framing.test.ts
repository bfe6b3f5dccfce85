import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { receive, send } from './framing.ts'

/** Bytes of a framed message. */
function frame(json: string): Buffer {
  const body = Buffer.from(json)
  const header = Buffer.alloc(4)
  header.writeUInt32BE(body.length)
  return Buffer.concat([header, body])
}

/** A socket that delivers chunks as they are written. */
const fakeSocket = (): Socket => new PassThrough() as unknown as Socket

test('messages of any length arrive complete and in order over a real socket', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [peer] = (await once(server, 'connection')) as [Socket]
  const received: unknown[] = []
  receive(peer, (message) => received.push(message))
  const book = 'Grüße 😀 '.repeat(100_000)

  send(client, { type: 'ping' })
  send(client, { type: 'generate', book })
  send(client, { type: 'cancel', id: 7 })
  client.end()
  await once(peer, 'end')

  expect(received).toEqual([{ type: 'ping' }, { type: 'generate', book }, { type: 'cancel', id: 7 }])
  client.destroy()
  server.close()
})

test('a message is parsed wherever its bytes are split into chunks', async () => {
  const bytes = Buffer.concat([frame('{"text":"ü😀"}'), frame('[]'), frame('{"n":1}')])
  const results: string[] = []

  for (let cut = 1; cut < bytes.length; cut++) {
    const socket = fakeSocket()
    const received: unknown[] = []
    receive(socket, (message) => received.push(message))
    socket.write(bytes.subarray(0, cut))
    socket.end(bytes.subarray(cut))
    await once(socket, 'end')
    results.push(JSON.stringify(received))
  }

  expect(results.length).toBe(bytes.length - 1)
  expect(new Set(results)).toEqual(new Set(['[{"text":"ü😀"},[],{"n":1}]']))
})

test('a message is parsed byte by byte', async () => {
  const socket = fakeSocket()
  const received: unknown[] = []
  receive(socket, (message) => received.push(message))

  for (const byte of frame('{"text":"ü"}')) socket.write(Buffer.from([byte]))
  socket.end()
  await once(socket, 'end')

  expect(received).toEqual([{ text: 'ü' }])
})

test('a message is delivered with its last byte, not before', async () => {
  const socket = fakeSocket()
  const received: unknown[] = []
  receive(socket, (message) => received.push(message))
  const bytes = frame('{"n":1}')

  socket.write(bytes.subarray(0, -1))
  await new Promise((resolve) => setImmediate(resolve))
  const before = received.length
  socket.write(bytes.subarray(-1))
  await new Promise((resolve) => setImmediate(resolve))

  expect(before).toBe(0)
  expect(received).toEqual([{ n: 1 }])
})

test.each([
  ['a message that is not JSON', frame('hello')],
  ['a message without content', frame('')],
  ['a length of 256 MiB and one byte', Buffer.from([0x10, 0x00, 0x00, 0x01])],
  ['bytes that are not a frame', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
])('disconnects a peer that sends %s', async (_what, bytes) => {
  const socket = fakeSocket()
  const received: unknown[] = []
  receive(socket, (message) => received.push(message))

  socket.write(bytes)
  await once(socket, 'close')

  expect(socket.destroyed).toBe(true)
  expect(received).toEqual([])
})

test('a message that the handler rejects destroys the socket, and later messages are dropped', async () => {
  const socket = fakeSocket()
  const received: unknown[] = []
  receive(socket, (message) => {
    received.push(message)
    throw new Error('no such type')
  })

  socket.write(Buffer.concat([frame('{"type":"bogus"}'), frame('{"type":"ping"}')]))
  await once(socket, 'close')

  expect(received).toEqual([{ type: 'bogus' }])
})

test('sending to a closed socket does nothing', async () => {
  const destroyed = fakeSocket()
  destroyed.destroy()
  const ended = fakeSocket()
  ended.end()
  const errors: unknown[] = []
  for (const socket of [destroyed, ended]) socket.on('error', (error) => errors.push(error))

  send(destroyed, { type: 'ping' })
  send(ended, { type: 'ping' })
  await new Promise((resolve) => setImmediate(resolve))

  expect(errors).toEqual([])
  expect(ended.read()).toBeNull()
})
