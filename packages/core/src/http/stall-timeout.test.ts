import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { PassThrough } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { withStallTimeout } from './stall-timeout.ts'

const stalled = { code: 'timeout', message: expect.stringContaining('sent nothing in 0.02 s') }
const within = (chunks: AsyncIterable<Uint8Array>) => withStallTimeout(chunks, 20, 1)[Symbol.asyncIterator]()
const textOf = ({ value }: IteratorResult<Uint8Array>) => value && Buffer.from(value).toString()
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

test('a body that stops coming is ended, before its first chunk and after it', async () => {
  const silent = within(new PassThrough())
  const body = new PassThrough()
  const begun = within(body)
  body.write('one')

  await expect(silent.next()).rejects.toMatchObject(stalled)
  expect(textOf(await begun.next())).toBe('one')
  await expect(begun.next()).rejects.toMatchObject(stalled)
})

test('a body that progresses may take any number of time limits', async () => {
  const source = async function* () {
    for (let chunk = 0; chunk < 8; chunk++) {
      await pause(5)
      yield Buffer.from(`${chunk}`)
    }
  }

  let text = ''
  for await (const chunk of withStallTimeout(source(), 20, 1)) text += Buffer.from(chunk).toString()

  expect(text).toBe('01234567')
})

test('a body that comes byte by byte is ended, unless any progress is enough', async () => {
  const source = async function* () {
    for (let byte = 0; byte < 40; byte++) {
      await pause(5)
      yield Buffer.from('x')
    }
  }
  const lengthOf = async (minBytes: number): Promise<number> => {
    let length = 0
    for await (const chunk of withStallTimeout(source(), 60, minBytes)) length += chunk.length
    return length
  }

  await expect(lengthOf(1_024)).rejects.toMatchObject({
    code: 'timeout',
    message: expect.stringContaining('sent less than 1024 bytes in 0.06 s'),
  })
  expect(await lengthOf(1)).toBe(40)
})

test('a body that makes enough progress in each time limit is read, and its end needs no progress', async () => {
  const source = async function* () {
    for (const bytes of [600, 600, 600, 600, 600, 600, 1]) {
      await pause(10)
      yield Buffer.alloc(bytes)
    }
  }

  let length = 0
  for await (const chunk of withStallTimeout(source(), 60, 1_024)) length += chunk.length

  expect(length).toBe(3_601)
})

test('the time of a slow consumer does not count towards the time of little progress', async () => {
  const source = async function* () {
    for (let byte = 0; byte < 8; byte++) yield Buffer.from('x')
  }

  let length = 0
  for await (const chunk of withStallTimeout(source(), 20, 1_024)) {
    length += chunk.length
    await pause(5)
  }

  expect(length).toBe(8)
})

test('the time of a slow consumer does not count', async () => {
  const body = new PassThrough()
  const chunks = within(body)
  body.write('one')
  await chunks.next()
  await pause(40)
  body.end('two')

  expect(textOf(await chunks.next())).toBe('two')
  expect(await chunks.next()).toEqual({ value: undefined, done: true })
})

test('a chunk that arrived while the event loop was blocked is in time', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const sender = connect((server.address() as AddressInfo).port, '127.0.0.1')
  onTestFinished(() => void sender.destroy())
  const [socket] = await once(server, 'connection')
  const chunk = within(socket).next()
  await pause(1)

  sender.write('late')
  const blockedUntil = performance.now() + 60
  while (performance.now() < blockedUntil);

  expect(textOf(await chunk)).toBe('late')
})

test('errors of the source pass through', async () => {
  const body = new PassThrough()
  const chunk = within(body).next()
  body.destroy(new Error('gone'))

  await expect(chunk).rejects.toThrow('gone')
})

test('a consumer that stops closes the source', async () => {
  let isClosed = false
  const source = async function* () {
    try {
      for (;;) yield Buffer.from('more')
    } finally {
      isClosed = true
    }
  }

  for await (const _chunk of withStallTimeout(source(), 20, 1)) break

  expect(isClosed).toBe(true)
})
