import { afterEach, expect, test, vi } from 'vitest'
import { LlmError } from '../errors.ts'
import { dataFrame, jsonLine, ndjson, sse } from './streams.ts'

const onError = ({ code, message }: LlmError): string => `error: ${code} ${message}\n\n`

async function* framesOf(...frames: string[]): AsyncGenerator<string> {
  yield* frames
}

const bodyOf = (frames: AsyncIterable<string>, heartbeatMs?: number): AsyncIterator<string> => {
  const { body } = sse(frames, { onError, ...(heartbeatMs !== undefined && { heartbeatMs }) })
  return (body as AsyncIterable<string>)[Symbol.asyncIterator]()
}

async function rest(body: AsyncIterator<string>): Promise<string[]> {
  const frames: string[] = []
  for (;;) {
    const { value, done } = await body.next()
    if (done) return frames
    frames.push(value)
  }
}

/** A stream whose frames the test emits one by one. */
function controlled(): { frames: AsyncGenerator<string>; give: (frame: string) => void } {
  let give: (frame: string) => void = () => {}
  async function* frames(): AsyncGenerator<string> {
    for (;;) {
      yield await new Promise<string>((resolve) => {
        give = resolve
      })
    }
  }
  return { frames: frames(), give: (frame) => give(frame) }
}

afterEach(() => {
  vi.useRealTimers()
})

test('a frame is one event of one line', () => {
  expect(dataFrame('{"a":1}')).toBe('data: {"a":1}\n\n')
})

test('the headers prevent proxies and compression from buffering frames', () => {
  const { status, headers } = sse(framesOf(), { onError })

  expect(status).toBe(200)
  expect(headers).toEqual({
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  })
})

test('JSON lines have the same headers, except for the content-type', () => {
  const { status, headers } = ndjson(framesOf(), { onError, heartbeat: '{}\n' })

  expect(status).toBe(200)
  expect(headers).toEqual({
    'content-type': 'application/x-ndjson',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  })
})

test('every value is one line', () => {
  expect(jsonLine({ a: '\n\u2028' })).toBe('{"a":"\\n\u2028"}\n')
})

test('the heartbeat between JSON lines is the given line', async () => {
  vi.useFakeTimers()
  const { frames, give } = controlled()
  const { body } = ndjson(frames, { onError, heartbeat: '{"said":""}\n', heartbeatMs: 1_000 })
  const lines = (body as AsyncIterable<string>)[Symbol.asyncIterator]()

  const first = lines.next()
  await vi.advanceTimersByTimeAsync(2_000)
  const second = lines.next()
  give('{"said":"Hi"}\n')

  expect(await first).toEqual({ value: '{"said":""}\n', done: false })
  expect(await second).toEqual({ value: '{"said":"Hi"}\n', done: false })
  await lines.return?.()
  expect(vi.getTimerCount()).toBe(0)
})

test('an error is the last JSON line', async () => {
  async function* failing(): AsyncGenerator<string> {
    yield '{"said":"Hi"}\n'
    throw new LlmError('upstream', 'The process ended.')
  }
  const { body } = ndjson(failing(), {
    onError: ({ message }) => jsonLine({ error: message }),
    heartbeat: '{}\n',
  })

  const lines = await rest((body as AsyncIterable<string>)[Symbol.asyncIterator]())

  expect(lines).toEqual(['{"said":"Hi"}\n', '{"error":"The process ended."}\n'])
})

test('frames are sent in order', async () => {
  const body = bodyOf(framesOf('a', 'b', 'c'))

  expect(await rest(body)).toEqual(['a', 'b', 'c'])
})

test('an error is rendered as the last frame', async () => {
  async function* failing(): AsyncGenerator<string> {
    yield 'a'
    throw new LlmError('upstream', 'The process ended.')
  }

  const frames = await rest(bodyOf(failing()))

  expect(frames).toEqual(['a', 'error: upstream The process ended.\n\n'])
})

test('an unknown error is rendered without its message', async () => {
  async function* failing(): AsyncGenerator<string> {
    yield 'a'
    throw new Error('password is hunter2')
  }

  const frames = await rest(bodyOf(failing()))

  expect(frames).toEqual(['a', 'error: internal Something went wrong inside the server.\n\n'])
})

test('the source is pulled only on demand', async () => {
  let pulled = 0
  async function* counted(): AsyncGenerator<string> {
    for (;;) yield String(pulled++)
  }
  const body = bodyOf(counted())
  const before = pulled

  await body.next()
  await body.next()

  expect(before).toBe(0)
  expect(pulled).toBe(2)
  await body.return?.()
})

test('comments are sent until the frame arrives', async () => {
  vi.useFakeTimers()
  const { frames, give } = controlled()
  const body = bodyOf(frames, 1_000)
  const seen: (string | undefined)[] = []
  const pull = async (): Promise<void> => {
    seen.push((await body.next()).value)
  }

  const first = pull()
  await vi.advanceTimersByTimeAsync(1_999)
  const early = [...seen]
  await vi.advanceTimersByTimeAsync(1)
  await first
  const second = pull()
  await vi.advanceTimersByTimeAsync(1_000)
  await second
  const third = pull()
  give('frame')
  await third

  expect(early).toEqual([])
  expect(seen).toEqual([': keepalive\n\n', ': keepalive\n\n', 'frame'])
  const ending = body.return?.()
  give('unread')
  await ending
})

test('the given heartbeat is sent', async () => {
  vi.useFakeTimers()
  const { frames, give } = controlled()
  const { body } = sse(frames, { onError, heartbeatMs: 1_000, heartbeat: 'event: ping\n\n' })
  const reader = (body as AsyncIterable<string>)[Symbol.asyncIterator]()

  const first = reader.next()
  await vi.advanceTimersByTimeAsync(2_000)

  expect((await first).value).toBe('event: ping\n\n')
  const ending = reader.return?.()
  give('unread')
  await ending
})

test('no frame is lost or repeated around heartbeats', async () => {
  vi.useFakeTimers()
  const { frames, give } = controlled()
  const body = bodyOf(frames, 1_000)
  const seen: string[] = []
  const reading = (async () => {
    while (seen.length < 8) seen.push((await body.next()).value)
  })()

  await vi.advanceTimersByTimeAsync(3_000)
  give('one')
  await vi.advanceTimersByTimeAsync(500)
  give('two')
  await vi.advanceTimersByTimeAsync(4_000)
  give('three')
  await reading

  expect(seen.filter((frame) => !frame.startsWith(':'))).toEqual(['one', 'two', 'three'])
  expect(seen).toEqual([
    ': keepalive\n\n',
    ': keepalive\n\n',
    'one',
    'two',
    ': keepalive\n\n',
    ': keepalive\n\n',
    ': keepalive\n\n',
    'three',
  ])
  const ending = body.return?.()
  give('unread')
  await ending
})

test('a frame that arrives during a heartbeat is not lost', async () => {
  vi.useFakeTimers()
  const { frames, give } = controlled()
  const body = bodyOf(frames, 1_000)
  const pulling = body.next()
  await vi.advanceTimersByTimeAsync(2_000)
  const first = await pulling

  give('one')
  await vi.advanceTimersByTimeAsync(500)
  const second = await body.next()

  expect([first.value, second.value]).toEqual([': keepalive\n\n', 'one'])
  await body.return?.()
})

test('a stream without pauses gets no heartbeat', async () => {
  vi.useFakeTimers()
  const { frames, give } = controlled()
  const body = bodyOf(frames, 1_000)
  const seen: string[] = []

  for (let i = 0; i < 10; i++) {
    const pulling = body.next()
    await vi.advanceTimersByTimeAsync(900)
    give(String(i))
    seen.push((await pulling).value)
  }

  expect(seen).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'])
  const ending = body.return?.()
  give('unread')
  await ending
})

test('heartbeats are sent every 7.5 s during silence', async () => {
  vi.useFakeTimers()
  const { frames, give } = controlled()
  const body = bodyOf(frames)
  let seen: string | undefined
  const pulling = body.next().then(({ value }) => {
    seen = value
  })

  await vi.advanceTimersByTimeAsync(14_999)
  const before = seen
  await vi.advanceTimersByTimeAsync(1)

  expect(before).toBeUndefined()
  expect(seen).toBe(': keepalive\n\n')
  await pulling
  const ending = body.return?.()
  give('unread')
  await ending
})

test('no heartbeats are buffered for a client that does not read', async () => {
  vi.useFakeTimers()
  const body = bodyOf(framesOf('a', 'b'), 1_000)
  await body.next()

  await vi.advanceTimersByTimeAsync(60_000)

  expect(await rest(body)).toEqual(['b'])
})

test('return() closes the source', async () => {
  let closed = false
  async function* source(): AsyncGenerator<string> {
    try {
      yield 'a'
      yield 'b'
    } finally {
      closed = true
    }
  }
  const body = bodyOf(source())
  await body.next()

  const returned = await body.return?.('left')

  expect(closed).toBe(true)
  expect(returned).toEqual({ value: 'left', done: true })
  expect(await body.next()).toEqual({ value: undefined, done: true })
})

async function* failing(): AsyncGenerator<string> {
  yield 'a'
  throw new LlmError('upstream', 'No.')
}

test.each<
  [how: string, use: (body: AsyncIterator<string>) => Promise<unknown>, frames: () => AsyncIterable<string>]
>([
  ['its last frame', rest, () => framesOf('a', 'b')],
  ['an error', rest, failing],
  [
    'a reader that left',
    async (body) => [await body.next(), await body.return?.()],
    () => framesOf('a', 'b'),
  ],
  ['a reader that never pulled', async (body) => body.return?.(), () => framesOf('a', 'b')],
])('no timer remains after %s', async (_how, use, frames) => {
  vi.useFakeTimers()
  const body = bodyOf(frames())

  await use(body)

  expect(vi.getTimerCount()).toBe(0)
})

test('no timer remains after an error that cannot be rendered', async () => {
  vi.useFakeTimers()
  const { body } = sse(failing(), {
    onError: () => {
      throw new Error('no such code')
    },
  })
  const reading = rest((body as AsyncIterable<string>)[Symbol.asyncIterator]())

  await expect(reading).rejects.toThrow('no such code')
  expect(vi.getTimerCount()).toBe(0)
})

test('a stream has one timer however many frames it has', async () => {
  vi.useFakeTimers()
  const body = bodyOf(framesOf('a', 'b', 'c', 'd'))

  for (let i = 0; i < 3; i++) await body.next()

  expect(vi.getTimerCount()).toBe(1)
  await body.return?.()
})
