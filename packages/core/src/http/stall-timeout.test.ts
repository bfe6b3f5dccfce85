import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { PassThrough } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { withStallTimeout } from './stall-timeout.ts'

const stalled = { code: 'timeout', message: expect.stringContaining('sent nothing for 0.02 s') }
const within = (chunks: AsyncIterable<Uint8Array>) => withStallTimeout(chunks, 20)[Symbol.asyncIterator]()
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
  for await (const chunk of withStallTimeout(source(), 20)) text += Buffer.from(chunk).toString()

  expect(text).toBe('01234567')
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

  for await (const _chunk of withStallTimeout(source(), 20)) break

  expect(isClosed).toBe(true)
})
