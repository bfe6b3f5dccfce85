import { setImmediate } from 'node:timers/promises'
import { expect, onTestFinished, test, vi } from 'vitest'
import { ContextPool } from './context-pool.ts'

/** Runs texts that stay active until the test ends them. */
function crowd(pool: ContextPool<string>) {
  const inside: string[] = []
  const seen = new Map<string, string>()
  const ways = new Map<string, () => void>()
  const enter = (name: string, { tenant = '', weight = 1, background = false, signal = live() } = {}) =>
    pool.run({ tenant, weight, background, signal }, async (context) => {
      inside.push(name)
      seen.set(name, context)
      await new Promise<void>((resolve) => ways.set(name, resolve))
      inside.splice(inside.indexOf(name), 1)
      return name
    })
  const leave = async (name: string): Promise<void> => {
    ways.get(name)?.()
    await setImmediate()
  }
  return { inside, seen, enter, leave }
}
const live = (): AbortSignal => new AbortController().signal
const pool = (most: number, make = async (): Promise<string> => 'another') =>
  new ContextPool('first', make, most)

test('at most one text per context is active, and queued texts follow when a text ends', async () => {
  const { inside, seen, enter, leave } = crowd(pool(2))
  const all = ['a', 'b', 'c'].map((name) => enter(name))
  await setImmediate()

  expect(inside).toEqual(['a', 'b'])
  await leave('a')
  expect(inside).toEqual(['b', 'c'])
  await leave('b')
  await leave('c')
  expect(await Promise.all(all)).toEqual(['a', 'b', 'c'])
  expect([...seen.values()]).toEqual(['first', 'another', 'first'])
})

test('a context is not created before it is needed', async () => {
  let made = 0
  const contexts = pool(4, async () => `made ${++made}`)
  const { enter, leave } = crowd(contexts)

  for (const name of ['a', 'b', 'c']) {
    const done = enter(name)
    await setImmediate()
    await leave(name)
    await done
  }

  expect(made).toBe(0)
})

test('with one context, tenants take turns by the time that their texts take', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const { inside, enter, leave } = crowd(pool(1))
  const order: (string | undefined)[] = []
  const finish = async (ms: number): Promise<void> => {
    const [name = 'none'] = inside
    order.push(name)
    vi.advanceTimersByTime(ms)
    await leave(name)
  }
  for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) void enter(name, { tenant: 'ann' })
  await setImmediate()
  for (const name of ['b1', 'b2']) void enter(name, { tenant: 'bob' })
  for (const name of ['c1', 'c2', 'c3', 'c4']) void enter(name, { tenant: 'cleo', weight: 2 })

  for (let text = 0; text < 11; text++) await finish(inside[0]?.startsWith('b') ? 20 : 10)

  expect(order.join(' ')).toBe('a1 b1 c1 c2 a2 c3 c4 a3 b2 a4 a5')
})

test('the tenant with the fewest active texts is next, then the one that has used contexts for less time', async () => {
  const { inside, enter, leave } = crowd(pool(2))
  for (const name of ['a1', 'a2', 'a3', 'a4']) void enter(name, { tenant: 'ann' })
  void enter('b1', { tenant: 'bob' })
  void enter('c1', { tenant: 'cleo' })
  await setImmediate()

  await leave('a1')
  expect(inside).toEqual(['a2', 'b1'])
  await leave('a2')
  expect(inside).toEqual(['b1', 'c1'])
  await leave('b1')
  expect(inside).toEqual(['c1', 'a3'])
})

test('background texts run while no foreground text is active or waits', async () => {
  const { inside, enter, leave } = crowd(pool(2))
  void enter('quiet', { background: true })
  void enter('a')
  void enter('b')
  void enter('other quiet', { background: true })
  await setImmediate()

  expect(inside).toEqual(['quiet', 'a'])
  await leave('quiet')
  await leave('a')
  expect(inside).toEqual(['b'])
  await leave('b')
  expect(inside).toEqual(['other quiet'])
})

test('an aborted text never runs, and a text with an aborted signal is not queued', async () => {
  const { inside, enter, leave } = crowd(pool(1))
  const leaving = new AbortController()
  const first = enter('a')
  const left = enter('b', { signal: leaving.signal })
  const third = enter('c')
  await setImmediate()

  leaving.abort()
  await leave('a')

  expect(inside).toEqual(['c'])
  await leave('c')
  expect(await Promise.all([first, left, third])).toEqual(['a', undefined, 'c'])
  expect(await enter('d', { signal: AbortSignal.abort() })).toBeUndefined()
})

test('a limit applies from the next admission on, and is at least one', async () => {
  const contexts = pool(3)
  const { inside, enter, leave } = crowd(contexts)
  for (const name of ['a', 'b', 'c', 'd']) void enter(name)
  await setImmediate()

  contexts.limitActive(0)
  await leave('a')
  await leave('b')
  expect(inside).toEqual(['c'])
  await leave('c')
  expect(inside).toEqual(['d'])
  contexts.limitActive(3)
  void enter('e')
  await setImmediate()
  expect(inside).toEqual(['d', 'e'])
})

test('a text waits for an existing context if no further context can be created', async () => {
  const contexts = pool(3, () => Promise.reject(new Error('no memory')))
  const { inside, enter, leave } = crowd(contexts)
  const all = ['a', 'b', 'c'].map((name) => enter(name))
  await setImmediate()

  expect(inside).toEqual(['a'])
  for (const name of ['a', 'b', 'c']) {
    await leave(inside[0] ?? name)
    await setImmediate()
  }
  expect((await Promise.all(all)).sort()).toEqual(['a', 'b', 'c'])
  expect(contexts.size).toBe(1)
})

test('a failure rejects its caller, and the next caller gets the context', async () => {
  const contexts = pool(1)
  const caller = { tenant: '', weight: 1, background: false, signal: live() }
  const failed = contexts.run(caller, () => Promise.reject(new Error('no')))

  await expect(failed).rejects.toThrow('no')
  expect(await contexts.run(caller, async (context) => context)).toBe('first')
})

test('whenIdle resolves when no text is active', async () => {
  const contexts = pool(2)
  const { enter, leave } = crowd(contexts)
  await contexts.whenIdle()
  void enter('a')
  void enter('b')
  let rests = false
  const resting = contexts.whenIdle().then(() => {
    rests = true
  })
  await setImmediate()

  await leave('a')
  expect(rests).toBe(false)
  await leave('b')
  await resting
})
