import { expect, test } from 'vitest'
import { Turns } from './turns.ts'

const live = (): AbortSignal => new AbortController().signal
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('the first call gets its turn at once', async () => {
  const turns = new Turns()

  const end = await turns.take(live())

  expect(end).toBeTypeOf('function')
})

test('turns are given one at a time, in order of arrival', async () => {
  const turns = new Turns()
  const log: string[] = []
  const work = async (name: string): Promise<void> => {
    const end = await turns.take(live())
    log.push(`${name} begins`)
    await settle()
    log.push(`${name} ends`)
    end?.()
  }

  await Promise.all([work('a'), work('b'), work('c')])

  expect(log).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
})

test('a call that comes while a turn is handed over does not slip in', async () => {
  const turns = new Turns()
  const order: string[] = []
  const endFirst = await turns.take(live())
  const second = turns.take(live()).then((end) => {
    order.push('second')
    return end
  })

  endFirst?.()
  const third = turns.take(live()).then(() => order.push('third'))
  const endSecond = await second
  await settle()

  expect(order).toEqual(['second'])

  endSecond?.()
  await third

  expect(order).toEqual(['second', 'third'])
})

test('the turn is free again when nobody waits', async () => {
  const turns = new Turns()
  const end = await turns.take(live())

  end?.()

  expect(await turns.take(live())).toBeTypeOf('function')
})

test('who leaves the queue never gets a turn, and the next in line does', async () => {
  const turns = new Turns()
  const leaving = new AbortController()
  const endFirst = await turns.take(live())
  const second = turns.take(leaving.signal)
  const third = turns.take(live())

  leaving.abort()
  endFirst?.()

  expect(await second).toBeUndefined()
  expect(await third).toBeTypeOf('function')
})

test('leaving the queue is answered at once, though the turn before goes on', async () => {
  const turns = new Turns()
  const leaving = new AbortController()
  await turns.take(live())
  const second = turns.take(leaving.signal)

  leaving.abort()

  expect(await second).toBeUndefined()
})

test('who has had a turn and aborts later takes nobody out of the queue', async () => {
  const turns = new Turns()
  const aborting = new AbortController()
  const endFirst = await turns.take(live())
  const second = turns.take(aborting.signal)
  const third = turns.take(live())
  endFirst?.()
  const endSecond = await second

  aborting.abort()
  endSecond?.()

  expect(await third).toBeTypeOf('function')
})

test('a call that was cancelled before takes no turn', async () => {
  const turns = new Turns()

  const end = await turns.take(AbortSignal.abort())

  expect(end).toBeUndefined()
  expect(await turns.take(live())).toBeTypeOf('function')
})

test('the 513th call in the queue is refused as overloaded', async () => {
  const turns = new Turns()
  const controllers = Array.from({ length: 512 }, () => new AbortController())
  await turns.take(live())
  const waiting = controllers.map(({ signal }) => turns.take(signal))

  const refused = turns.take(live())

  await expect(refused).rejects.toMatchObject({ code: 'overloaded', details: { retryAfterMs: 5_000 } })
  for (const controller of controllers) controller.abort()
  expect(new Set(await Promise.all(waiting))).toEqual(new Set([undefined]))
})

test('a place in the queue that was left can be taken', async () => {
  const turns = new Turns()
  const leaving = new AbortController()
  const endFirst = await turns.take(live())
  const left = turns.take(leaving.signal)
  const waiting = Array.from({ length: 511 }, () => turns.take(live()))

  leaving.abort()
  const last = turns.take(live())
  for (const turn of [Promise.resolve(endFirst), ...waiting]) (await turn)?.()

  expect(await left).toBeUndefined()
  expect(await last).toBeTypeOf('function')
})

test('what waits is bounded by its size, too', async () => {
  const turns = new Turns()
  const { signal } = new AbortController()
  const end = await turns.take(signal, 60 * 1024 * 1024)
  const waiting = turns.take(signal, 60 * 1024 * 1024)

  await expect(turns.take(signal, 60 * 1024 * 1024)).rejects.toMatchObject({ code: 'overloaded' })
  end?.()
  const next = await waiting
  const small = turns.take(signal, 10)
  next?.()

  expect(await small).toBeTypeOf('function')
})
