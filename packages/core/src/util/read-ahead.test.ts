import { expect, test } from 'vitest'
import { readAhead } from './read-ahead.ts'

const live = (): AbortSignal => new AbortController().signal

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const read: T[] = []
  for await (const item of items) read.push(item)
  return read
}

/** Resolves when the signal aborts, as each producer must. */
const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))

test('delivers items in the order they were pushed', async () => {
  const items = readAhead<number>(live(), async (push) => {
    push(1)
    push(2)
    await Promise.resolve()
    push(3)
  })

  const read = await all(items)

  expect(read).toEqual([1, 2, 3])
})

test('starts the producer on the first pull', async () => {
  let produced = 0
  const items = readAhead<number>(live(), async (push) => {
    produced++
    push(1)
  })
  await Promise.resolve()

  expect(produced).toBe(0)

  await items.next()
  await items.next()

  expect(produced).toBe(1)
})

test('a slow reader does not delay the producer', async () => {
  let finished = false
  const items = readAhead<number>(live(), async (push) => {
    for (let i = 0; i < 1_000; i++) {
      push(i)
      await Promise.resolve()
    }
    finished = true
  })

  const first = await items.next()
  await new Promise((resolve) => setImmediate(resolve))

  expect(first.value).toBe(0)
  expect(finished).toBe(true)
  expect((await all(items)).length).toBe(999)
})

test('a waiting reader gets an item when it is pushed', async () => {
  let give: (item: string) => void = () => {}
  const controller = new AbortController()
  const items = readAhead<string>(controller.signal, (push, signal) => {
    give = push
    return untilAborted(signal)
  })
  const waiting = items.next()

  give('late')

  expect(await waiting).toEqual({ value: 'late', done: false })
  controller.abort()
})

test('delivers items pushed before a failure, then throws it once', async () => {
  const error = new Error('process ended')
  const items = readAhead<number>(live(), async (push) => {
    push(1)
    push(2)
    throw error
  })

  expect(await items.next()).toEqual({ value: 1, done: false })
  expect(await items.next()).toEqual({ value: 2, done: false })
  await expect(items.next()).rejects.toBe(error)
  expect(await items.next()).toEqual({ value: undefined, done: true })
})

test('a waiting reader gets the failure', async () => {
  let fail: (error: Error) => void = () => {}
  const error = new Error('process ended')
  const items = readAhead<number>(
    live(),
    () =>
      new Promise((_resolve, reject) => {
        fail = reject
      }),
  )
  const waiting = items.next()

  fail(error)

  await expect(waiting).rejects.toBe(error)
})

test("return() aborts the producer's signal and ends the iteration", async () => {
  let seen: AbortSignal | undefined
  const items = readAhead<number>(live(), (push, signal) => {
    seen = signal
    push(1)
    push(2)
    return untilAborted(signal)
  })
  await items.next()

  const returned = await items.return?.('left')

  expect(returned).toEqual({ value: 'left', done: true })
  expect(seen?.aborted).toBe(true)
  expect(await items.next()).toEqual({ value: undefined, done: true })
})

test('return() ends a waiting pull', async () => {
  const items = readAhead<number>(live(), (_push, signal) => untilAborted(signal))
  const waiting = items.next()

  await items.return?.()

  expect(await waiting).toEqual({ value: undefined, done: true })
})

test('return() before the first pull starts no producer', async () => {
  let produced = false
  const items = readAhead<number>(live(), async () => {
    produced = true
  })

  await items.return?.()

  expect(await items.next()).toEqual({ value: undefined, done: true })
  expect(produced).toBe(false)
})

test('breaking out of a loop aborts the producer', async () => {
  let seen: AbortSignal | undefined
  const items = readAhead<number>(live(), (push, signal) => {
    seen = signal
    push(1)
    push(2)
    return untilAborted(signal)
  })

  for await (const _item of items) break

  expect(seen?.aborted).toBe(true)
})

test('an abort ends the iteration and a waiting pull without an error', async () => {
  const controller = new AbortController()
  const items = readAhead<number>(controller.signal, (push, signal) => {
    push(1)
    return untilAborted(signal)
  })
  await items.next()
  const waiting = items.next()

  controller.abort()

  expect(await waiting).toEqual({ value: undefined, done: true })
})

test('an abort ends a waiting pull, even when the producer ignores it', async () => {
  const controller = new AbortController()
  const items = readAhead<number>(controller.signal, () => new Promise(() => {}))
  const waiting = items.next()

  controller.abort()

  expect(await waiting).toEqual({ value: undefined, done: true })
})

test('a failure of an aborted producer is not thrown', async () => {
  const controller = new AbortController()
  const items = readAhead<number>(controller.signal, async (_push, signal) => {
    await untilAborted(signal)
    throw new Error('cancelled')
  })
  const waiting = items.next()

  controller.abort()

  expect(await waiting).toEqual({ value: undefined, done: true })
  expect(await items.next()).toEqual({ value: undefined, done: true })
})

test('an aborted signal starts no producer', async () => {
  let produced = false
  const items = readAhead<number>(AbortSignal.abort(), async () => {
    produced = true
  })

  const read = await items.next()

  expect(read).toEqual({ value: undefined, done: true })
  expect(produced).toBe(false)
})
