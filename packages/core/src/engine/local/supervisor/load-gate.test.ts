import { expect, test } from 'vitest'
import { LoadGate } from './load-gate.ts'

const live = (): AbortSignal => new AbortController().signal
/** Each call with a model of its own, unless it says which. */
let models = 0
const take = (turns: LoadGate, signal = live(), model = `model ${models++}`) =>
  turns.enter(signal, () => model)
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('the first call gets its turn at once', async () => {
  const turns = new LoadGate()

  const end = await take(turns)

  expect(end).toBeTypeOf('function')
})

test('turns are given one at a time, in order of arrival', async () => {
  const turns = new LoadGate()
  const log: string[] = []
  const work = async (name: string): Promise<void> => {
    const end = await take(turns)
    log.push(`${name} begins`)
    await settle()
    log.push(`${name} ends`)
    end?.()
  }

  await Promise.all([work('a'), work('b'), work('c')])

  expect(log).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
})

test('a call that comes while a turn is handed over does not slip in', async () => {
  const turns = new LoadGate()
  const order: string[] = []
  const endFirst = await take(turns)
  const second = take(turns).then((end) => {
    order.push('second')
    return end
  })

  endFirst?.()
  const third = take(turns).then(() => order.push('third'))
  const endSecond = await second
  await settle()

  expect(order).toEqual(['second'])

  endSecond?.()
  await third

  expect(order).toEqual(['second', 'third'])
})

test('the turn is free again when nobody waits', async () => {
  const turns = new LoadGate()
  const end = await take(turns)

  end?.()

  expect(await take(turns)).toBeTypeOf('function')
})

test('who leaves the queue never gets a turn, and the next in line does', async () => {
  const turns = new LoadGate()
  const leaving = new AbortController()
  const endFirst = await take(turns)
  const second = take(turns, leaving.signal)
  const third = take(turns)

  leaving.abort()
  endFirst?.()

  expect(await second).toBeUndefined()
  expect(await third).toBeTypeOf('function')
})

test('leaving the queue is answered at once, though the turn before goes on', async () => {
  const turns = new LoadGate()
  const leaving = new AbortController()
  await take(turns)
  const second = take(turns, leaving.signal)

  leaving.abort()

  expect(await second).toBeUndefined()
})

test('who has had a turn and aborts later takes nobody out of the queue', async () => {
  const turns = new LoadGate()
  const aborting = new AbortController()
  const endFirst = await take(turns)
  const second = take(turns, aborting.signal)
  const third = take(turns)
  endFirst?.()
  const endSecond = await second

  aborting.abort()
  endSecond?.()

  expect(await third).toBeTypeOf('function')
})

test('a call that was cancelled before takes no turn', async () => {
  const turns = new LoadGate()

  const end = await take(turns, AbortSignal.abort())

  expect(end).toBeUndefined()
  expect(await take(turns)).toBeTypeOf('function')
})

test('a place in the queue that was left can be taken', async () => {
  const turns = new LoadGate()
  const leaving = new AbortController()
  const endFirst = await take(turns)
  const left = take(turns, leaving.signal)
  const waiting = Array.from({ length: 10 }, () => take(turns))

  leaving.abort()
  const last = take(turns)
  for (const turn of [Promise.resolve(endFirst), ...waiting]) (await turn)?.()

  expect(await left).toBeUndefined()
  expect(await last).toBeTypeOf('function')
})

test('calls for the same model go side by side', async () => {
  const turns = new LoadGate()

  const ends = await Promise.all(['a', 'a', 'a'].map((model) => take(turns, live(), model)))

  expect(ends.every((end) => end !== undefined)).toBe(true)
})

test('one for another model waits for all of them, and nobody overtakes it', async () => {
  const turns = new LoadGate()
  const order: string[] = []
  const [first, second] = await Promise.all([take(turns, live(), 'a'), take(turns, live(), 'a')])
  const other = take(turns, live(), 'b').then((end) => {
    order.push('b')
    return end
  })
  const late = take(turns, live(), 'a').then(() => order.push('a'))

  first?.()
  await settle()
  expect(order).toEqual([])
  second?.()
  ;(await other)?.()
  await late

  expect(order).toEqual(['b', 'a'])
})

test('who leaves from the head of the queue lets those behind in', async () => {
  const turns = new LoadGate()
  const leaving = new AbortController()
  await take(turns, live(), 'a')
  const other = take(turns, leaving.signal, 'b')
  const same = take(turns, live(), 'a')

  leaving.abort()

  expect(await other).toBeUndefined()
  expect(await same).toBeTypeOf('function')
})

test('what a call wants may depend on what there is', async () => {
  const turns = new LoadGate()
  const first = await take(turns, live(), 'small')
  const second = turns.enter(live(), (current) => current ?? 'large')

  expect(await second).toBeTypeOf('function')
  first?.()
})
