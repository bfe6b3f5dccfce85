import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { LoadGate } from './load-gate.ts'

const live = (): AbortSignal => new AbortController().signal
/** Each call asks for another model, unless the test names one. */
let models = 0
const noDelay = (): number => 0
const take = (gate: LoadGate, signal = live(), model = `model ${models++}`, reloadDelayMs = noDelay) =>
  gate.enter(signal, { chooseKey: () => model, reloadDelayMs })
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('the first call enters at once', async () => {
  const gate = new LoadGate()

  const end = await take(gate)

  expect(end).toBeTypeOf('function')
})

test('calls with different keys enter one at a time, in order of arrival', async () => {
  const gate = new LoadGate()
  const log: string[] = []
  const work = async (name: string): Promise<void> => {
    const end = await take(gate)
    log.push(`${name} begins`)
    await settle()
    log.push(`${name} ends`)
    end?.()
  }

  await Promise.all([work('a'), work('b'), work('c')])

  expect(log).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
})

test('a call that arrives while the gate changes hands does not overtake a queued call', async () => {
  const gate = new LoadGate()
  const order: string[] = []
  const endFirst = await take(gate)
  const second = take(gate).then((end) => {
    order.push('second')
    return end
  })

  endFirst?.()
  const third = take(gate).then(() => order.push('third'))
  const endSecond = await second
  await settle()

  expect(order).toEqual(['second'])

  endSecond?.()
  await third

  expect(order).toEqual(['second', 'third'])
})

test('the gate is free again after the last call', async () => {
  const gate = new LoadGate()
  const end = await take(gate)

  end?.()

  expect(await take(gate)).toBeTypeOf('function')
})

test('an aborted call never enters, and the next one does', async () => {
  const gate = new LoadGate()
  const leaving = new AbortController()
  const endFirst = await take(gate)
  const second = take(gate, leaving.signal)
  const third = take(gate)

  leaving.abort()
  endFirst?.()

  expect(await second).toBeUndefined()
  expect(await third).toBeTypeOf('function')
})

test('an abort in the queue resolves at once, while the call inside runs on', async () => {
  const gate = new LoadGate()
  const leaving = new AbortController()
  await take(gate)
  const second = take(gate, leaving.signal)

  leaving.abort()

  expect(await second).toBeUndefined()
})

test('an abort after entry removes no other call from the queue', async () => {
  const gate = new LoadGate()
  const aborting = new AbortController()
  const endFirst = await take(gate)
  const second = take(gate, aborting.signal)
  const third = take(gate)
  endFirst?.()
  const endSecond = await second

  aborting.abort()
  endSecond?.()

  expect(await third).toBeTypeOf('function')
})

test('a call with an aborted signal does not enter', async () => {
  const gate = new LoadGate()

  const end = await take(gate, AbortSignal.abort())

  expect(end).toBeUndefined()
  expect(await take(gate)).toBeTypeOf('function')
})

test('other calls enter after a queued call has aborted', async () => {
  const gate = new LoadGate()
  const leaving = new AbortController()
  const endFirst = await take(gate)
  const left = take(gate, leaving.signal)
  const waiting = Array.from({ length: 10 }, () => take(gate))

  leaving.abort()
  const last = take(gate)
  for (const turn of [Promise.resolve(endFirst), ...waiting]) (await turn)?.()

  expect(await left).toBeUndefined()
  expect(await last).toBeTypeOf('function')
})

test('calls with the same key run side by side', async () => {
  const gate = new LoadGate()

  const ends = await Promise.all(['a', 'a', 'a'].map((model) => take(gate, live(), model)))

  expect(ends.every((end) => end !== undefined)).toBe(true)
})

test('a call with another key waits for all calls inside, and no call overtakes it', async () => {
  const gate = new LoadGate()
  const order: string[] = []
  const [first, second] = await Promise.all([take(gate, live(), 'a'), take(gate, live(), 'a')])
  const other = take(gate, live(), 'b').then((end) => {
    order.push('b')
    return end
  })
  const late = take(gate, live(), 'a').then(() => order.push('a'))

  first?.()
  await settle()
  expect(order).toEqual([])
  second?.()
  ;(await other)?.()
  await late

  expect(order).toEqual(['b', 'a'])
})

test('an abort at the head of the queue admits the calls behind it', async () => {
  const gate = new LoadGate()
  const leaving = new AbortController()
  await take(gate, live(), 'a')
  const other = take(gate, leaving.signal, 'b')
  const same = take(gate, live(), 'a')

  leaving.abort()

  expect(await other).toBeUndefined()
  expect(await same).toBeTypeOf('function')
})

test('the key of a call may depend on the current key', async () => {
  const gate = new LoadGate()
  const first = await take(gate, live(), 'small')
  const second = gate.enter(live(), {
    chooseKey: (current) => current ?? 'large',
    reloadDelayMs: noDelay,
  })

  expect(await second).toBeTypeOf('function')
  first?.()
})

describe('while the loaded model must still serve for 5 s', () => {
  const start = Date.now()
  /** Whether a model is loaded. */
  let isLoaded: boolean
  let gate: LoadGate
  let order: string[]
  const delayMs = (): number => (isLoaded ? Math.max(0, start + 5_000 - Date.now()) : 0)
  const enter = (key: string, signal = live(), reloadDelayMs = delayMs) =>
    take(gate, signal, key, reloadDelayMs).then((end) => {
      if (end) order.push(key)
      return end
    })

  beforeEach(() => {
    vi.useFakeTimers({ now: start })
    isLoaded = true
    order = []
    gate = new LoadGate()
  })

  afterEach(() => {
    vi.useRealTimers()
  })

  /** The model is loaded for calls with the key `a`. */
  const loadForA = async (): Promise<void> => {
    isLoaded = false
    const end = await enter('a')
    isLoaded = true
    end?.()
    order = []
  }

  test('a call with another key waits, even if no call runs', async () => {
    await loadForA()
    const other = enter('b')

    await vi.advanceTimersByTimeAsync(4_999)
    expect(order).toEqual([])
    await vi.advanceTimersByTimeAsync(1)

    expect(order).toEqual(['b'])
    expect(await other).toBeTypeOf('function')
  })

  test('calls that the loaded model can serve overtake a call with another key', async () => {
    await loadForA()
    void enter('b')
    void enter('c')

    for (let call = 0; call < 3; call++) (await enter('a'))?.()

    expect(order).toEqual(['a', 'a', 'a'])
  })

  test('afterwards, the calls that run end first, and no later call overtakes', async () => {
    await loadForA()
    const other = enter('b')
    const running = await enter('a')

    await vi.advanceTimersByTimeAsync(5_000)
    const late = enter('a')
    await vi.advanceTimersByTimeAsync(60_000)
    expect(order).toEqual(['a'])
    running?.()
    ;(await other)?.()
    await late

    expect(order).toEqual(['a', 'b', 'a'])
  })

  test('a call without a delay overtakes one that waits, when the calls that run have ended', async () => {
    await loadForA()
    const running = await enter('a')
    void enter('b')
    const other = enter('c', live(), noDelay)
    void enter('a')
    await vi.advanceTimersByTimeAsync(0)
    expect(order).toEqual(['a'])

    running?.()

    expect(await other).toBeTypeOf('function')
    expect(order).toEqual(['a', 'c'])
  })

  test('a waiting call enters at the next pump when the model is not loaded any more', async () => {
    await loadForA()
    const other = enter('b')

    isLoaded = false
    gate.pump()

    expect(await other).toBeTypeOf('function')
  })

  test('a call whose key becomes the current one enters at the next pump, past other calls', async () => {
    isLoaded = false
    const first = await enter('b')
    void enter('a')
    const same = enter('b')
    await vi.advanceTimersByTimeAsync(0)
    expect(order).toEqual(['b'])

    isLoaded = true
    gate.pump()

    expect(await same).toBeTypeOf('function')
    expect(order).toEqual(['b', 'b'])
    first?.()
  })

  test('no timer is left when the waiting calls have aborted', async () => {
    await loadForA()
    const leaving = new AbortController()
    const other = enter('b', leaving.signal)
    expect(vi.getTimerCount()).toBe(1)

    leaving.abort()

    expect(await other).toBeUndefined()
    expect(vi.getTimerCount()).toBe(0)
  })
})
