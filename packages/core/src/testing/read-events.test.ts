import { expect, test } from 'vitest'
import { readEvents, type ServerSentEvent } from './read-events.ts'

async function all(events: AsyncIterable<ServerSentEvent>): Promise<ServerSentEvent[]> {
  const read: ServerSentEvent[] = []
  for await (const event of events) read.push(event)
  return read
}

/** Splits the bytes of a text at each position. */
async function* cut(text: string, ...positions: number[]): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text)
  for (let i = 0; i <= positions.length; i++) yield bytes.subarray(positions[i - 1] ?? 0, positions[i])
}

test('events are read from a complete text', async () => {
  const events = await all(readEvents('data: {"a":1}\n\nevent: ping\ndata: x\n\ndata: [DONE]\n\n'))

  expect(events).toEqual([
    { event: undefined, data: '{"a":1}' },
    { event: 'ping', data: 'x' },
    { event: undefined, data: '[DONE]' },
  ])
})

test('comments are skipped', async () => {
  const events = await all(readEvents(': keepalive\n\ndata: 1\n\n: keepalive\n\n'))

  expect(events).toEqual([{ event: undefined, data: '1' }])
})

test('an event without its empty line is not emitted', async () => {
  const events = await all(readEvents('data: 1\n\ndata: 2\n'))

  expect(events).toEqual([{ event: undefined, data: '1' }])
})

test('events are read wherever the bytes are split, even inside characters', async () => {
  const text = 'data: ü😀\n\ndata: b\n\n'
  const length = Buffer.byteLength(text)
  const results = new Set<string>()

  for (let position = 1; position < length; position++)
    results.add(JSON.stringify((await all(readEvents(cut(text, position)))).map(({ data }) => data)))

  expect(results).toEqual(new Set(['["ü😀","b"]']))
})

test('an event is emitted before the next chunk is pulled', async () => {
  let asked = 0
  async function* body(): AsyncGenerator<Uint8Array> {
    asked++
    yield Buffer.from('data: 1\n\n')
    asked++
    yield Buffer.from('data: 2\n\n')
  }
  const events = readEvents(body())

  const first = await events.next()

  expect(first.value).toEqual({ event: undefined, data: '1' })
  expect(asked).toBe(1)
})

test('the body of a Response is read', async () => {
  const { body } = new Response('data: hello\n\n')

  const events = await all(readEvents(body as AsyncIterable<Uint8Array>))

  expect(events).toEqual([{ event: undefined, data: 'hello' }])
})

test('ending the events early ends the body', async () => {
  let closed = false
  async function* body(): AsyncGenerator<Uint8Array> {
    try {
      yield Buffer.from('data: 1\n\n')
      yield Buffer.from('data: 2\n\n')
    } finally {
      closed = true
    }
  }

  for await (const _event of readEvents(body())) break

  expect(closed).toBe(true)
})
