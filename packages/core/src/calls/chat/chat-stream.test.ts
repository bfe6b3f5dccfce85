import { getEventListeners } from 'node:events'
import { expect, test } from 'vitest'
import { ChatStream } from './chat-stream.ts'

async function* words(signal: AbortSignal): AsyncGenerator<string, number> {
  for (const word of ['one', 'two', 'three']) {
    if (signal.aborted) throw new Error('too late')
    yield word
  }
  return 3
}

async function* failing(): AsyncGenerator<string, number> {
  yield 'one'
  throw new Error('broken')
}

async function all(stream: AsyncIterable<string>): Promise<string[]> {
  const items: string[] = []
  for await (const item of stream) items.push(item)
  return items
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('the result is there after the items', async () => {
  const stream = new ChatStream(words)

  expect(await all(stream)).toEqual(['one', 'two', 'three'])
  expect(await stream.result).toBe(3)
})

test('the result alone generates the answer, and the items can be read afterwards', async () => {
  const stream = new ChatStream(words)

  expect(await stream.result).toBe(3)
  expect(await all(stream)).toEqual(['one', 'two', 'three'])
})

test('the result can be awaited while the items are read', async () => {
  const stream = new ChatStream(words)

  expect(await Promise.all([stream.result, all(stream)])).toEqual([3, ['one', 'two', 'three']])
})

test('pulls that overlap get the items in order', async () => {
  const stream = new ChatStream(words)

  const pulls = await Promise.all([stream.next(), stream.next(), stream.next(), stream.next()])

  expect(pulls.map(({ value }) => value)).toEqual(['one', 'two', 'three', undefined])
})

test('a failure reaches the reader after the items before it, and the result', async () => {
  const stream = new ChatStream(failing)
  const items: string[] = []

  const reading = (async () => {
    for await (const item of stream) items.push(item)
  })()

  await expect(reading).rejects.toThrow('broken')
  expect(items).toEqual(['one'])
  await expect(stream.result).rejects.toThrow('broken')
  expect(await stream.next()).toEqual({ value: undefined, done: true })
})

test('nothing is unhandled if the result of a failed or cancelled stream is ignored', async () => {
  const unhandled: unknown[] = []
  const onUnhandled = (reason: unknown): void => void unhandled.push(reason)
  process.on('unhandledRejection', onUnhandled)

  await all(new ChatStream(failing)).catch(() => {})
  for await (const _item of new ChatStream(words)) break
  void new ChatStream(failing).result
  await nextTurn()
  await nextTurn()
  process.off('unhandledRejection', onUnhandled)

  expect(unhandled).toEqual([])
})

test('a reader that stops cancels the answer, and the result rejects with an AbortError', async () => {
  let signal: AbortSignal | undefined
  const stream = new ChatStream((given) => {
    signal = given
    return words(given)
  })

  for await (const _item of stream) break

  expect(signal?.aborted).toBe(true)
  await expect(stream.result).rejects.toMatchObject({ name: 'AbortError' })
})

test('an abort ends the items without an error, and the listener is removed', async () => {
  const controller = new AbortController()
  const stream = new ChatStream(words, controller.signal)
  const items: string[] = []

  for await (const item of stream) {
    items.push(item)
    controller.abort()
  }

  expect(items).toEqual(['one'])
  await expect(stream.result).rejects.toMatchObject({ name: 'AbortError' })
  expect(getEventListeners(controller.signal, 'abort')).toEqual([])
})

test('the AbortError has the reason of the signal as its cause', async () => {
  const controller = new AbortController()
  const timedOut = new DOMException('Too slow.', 'TimeoutError')
  const during = new ChatStream(words, controller.signal)
  await during.next()

  controller.abort(timedOut)
  await during.next()
  const before = new ChatStream(words, controller.signal)

  await expect(during.result).rejects.toMatchObject({ name: 'AbortError', cause: timedOut })
  await expect(before.result).rejects.toMatchObject({ name: 'AbortError', cause: timedOut })
})

test('a stream that is never read does not listen to the signal', () => {
  const { signal } = new AbortController()

  new ChatStream(words, signal)

  expect(getEventListeners(signal, 'abort')).toEqual([])
})

test('a stream that is read to its end does not listen any more', async () => {
  const { signal } = new AbortController()

  await all(new ChatStream(words, signal))

  expect(getEventListeners(signal, 'abort')).toEqual([])
})
