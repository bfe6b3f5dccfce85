import { setMaxListeners } from 'node:events'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { LlmError } from '../errors.ts'
import { FairQueue } from './fair-queue.ts'

const never = new AbortController().signal
setMaxListeners(0, never)

/** Lets pending promises settle. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

/** Records admitted calls in order and keeps their release functions. */
function watched(queue: FairQueue, weights: Readonly<Record<string, number>> = {}) {
  const entered: string[] = []
  const ways: (() => void)[] = []
  return {
    entered,
    come: (tenant: string, call = tenant, signal = never) =>
      queue.acquire(tenant, signal, weights[tenant]).then((leave) => {
        if (!leave) return 'left'
        entered.push(call)
        ways.push(leave)
        return 'entered'
      }),
    /** Ends the oldest running call and lets the next one enter. */
    end: async () => {
      await turn()
      ways.shift()?.()
      await turn()
    },
  }
}

describe('a queue with one permit', () => {
  test('admits one call of each tenant at once, and the next one when it ends', async () => {
    const { entered, come, end } = watched(new FairQueue({ permits: 1, maxQueued: 10 }))
    for (const call of ['a1', 'a2', 'a3', 'a4', 'b1', 'c1', 'b2']) void come(call.charAt(0), call)
    await turn()
    expect(entered).toEqual(['a1', 'b1', 'c1'])

    for (let ends = 0; ends < 7; ends++) await end()

    expect(entered.slice(3)).toEqual(['a2', 'b2', 'a3', 'a4'])
  })

  test('drops calls that abort', async () => {
    const queue = new FairQueue({ permits: 1, maxQueued: 10 })
    const { entered, come, end } = watched(queue)
    const leaving = new AbortController()
    void come('a', 'a1')
    const left = come('a', 'a2', leaving.signal)
    void come('a', 'a3')

    leaving.abort()

    expect(await left).toBe('left')
    expect(queue.queued).toBe(1)
    await end()
    expect(entered).toEqual(['a1', 'a3'])
  })

  test('does not admit a call with an aborted signal', async () => {
    const { come } = watched(new FairQueue({ permits: 1, maxQueued: 10 }))

    expect(await come('a', 'a1', AbortSignal.abort())).toBe('left')
    expect(await come('b')).toBe('entered')
  })

  test('counts a double release once', async () => {
    const queue = new FairQueue({ permits: 1, maxQueued: 10 })
    const leave = await queue.acquire('a', never)
    leave?.()
    leave?.()
    await queue.acquire('a', never)
    void queue.acquire('a', never)

    await turn()

    expect(queue.queued).toBe(1)
  })
})

test('admits as many calls as there are permits', async () => {
  const queue = new FairQueue({ permits: 3, maxQueued: 10 })
  const { entered, come, end } = watched(queue)
  for (let call = 0; call < 5; call++) void come('a', `a${call}`)
  await end()

  expect(entered).toHaveLength(4)
  expect(queue.queued).toBe(1)
})

describe('a queue with a time limit', () => {
  test('rejects a call whose turn does not come, with the estimated wait', async () => {
    const clock = { now: 0 }
    const queue = new FairQueue({ permits: 1, maxQueued: 10, timeoutMs: 20, now: () => clock.now })
    const { entered, come, end } = watched(queue)
    void come('a', 'a1')
    await turn()
    clock.now += 5_000
    await end()
    void come('a', 'a2')

    const [late, later] = await Promise.all([come('a'), come('a')].map((call) => call.catch(LlmError.from)))

    expect(late).toMatchObject({ code: 'overloaded', message: expect.stringContaining('within 0.02 s') })
    expect(late).toMatchObject({ details: { retryAfterMs: 5_000 } })
    expect(later).toMatchObject({ code: 'overloaded', details: { retryAfterMs: 1_000 } })
    expect(queue.queued).toBe(0)
    expect(entered).toEqual(['a1', 'a2'])
  })

  test('passes the turn of a rejected call to the next one', async () => {
    const { entered, come, end } = watched(new FairQueue({ permits: 1, maxQueued: 10, timeoutMs: 20 }))
    void come('a', 'a1')
    await expect(come('a', 'a2')).rejects.toMatchObject({ code: 'overloaded' })
    void come('a', 'a3')

    await end()

    expect(entered).toEqual(['a1', 'a3'])
  })

  test('does not limit how long an admitted call runs, and leaves no timer', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const queue = new FairQueue({ permits: 1, maxQueued: 10, timeoutMs: 20 })
    const { entered, come, end } = watched(queue)
    const leaving = new AbortController()
    void come('a', 'a1')
    const second = come('a', 'a2')
    const left = come('a', 'a3', leaving.signal)
    leaving.abort()
    await end()

    expect([await second, await left]).toEqual(['entered', 'left'])
    expect(vi.getTimerCount()).toBe(0)
    expect(entered).toEqual(['a1', 'a2'])
  })
})

describe('a queue that is full', () => {
  test('rejects the next call with the estimated wait', async () => {
    const clock = { now: 0 }
    const queue = new FairQueue({ permits: 2, maxQueued: 4, now: () => clock.now })
    const { come, end } = watched(queue)
    for (let call = 0; call < 3; call++) void come('a')
    await turn()
    clock.now += 5_000
    await end()
    for (let call = 0; call < 4; call++) void come('a')

    const refused = await come('a').catch((error: unknown) => error)

    expect(refused).toBeInstanceOf(LlmError)
    expect(refused).toMatchObject({ code: 'overloaded', details: { retryAfterMs: 10_000 } })
    expect(queue.queued).toBe(4)
  })

  test('rejects the last call of the tenant with the most waiting calls, not the new one', async () => {
    const { entered, come, end } = watched(new FairQueue({ permits: 1, maxQueued: 3 }))
    const greedy = ['a1', 'a2', 'a3', 'a4'].map((call) => come('a', call))
    const refused = greedy.slice(2).map((call) => expect(call).rejects.toMatchObject({ code: 'overloaded' }))

    void come('b', 'b1')
    void come('b', 'b2')

    await Promise.all(refused)
    for (let ends = 0; ends < 4; ends++) await end()
    expect(entered).toEqual(['a1', 'b1', 'a2', 'b2'])
  })

  test('admits a call that finds a free permit', async () => {
    const { come } = watched(new FairQueue({ permits: 1, maxQueued: 0 }))

    expect(await come('a')).toBe('entered')
    await expect(come('a')).rejects.toMatchObject({ code: 'overloaded', details: { retryAfterMs: 1_000 } })
  })

  test('admits the first call of each tenant, even if nothing may wait', async () => {
    const { entered, come, end } = watched(new FairQueue({ permits: 2, maxQueued: 0 }))
    void come('a')
    void come('a')

    expect(await Promise.all([come('b'), come('c')])).toEqual(['entered', 'entered'])
    for (const tenant of ['a', 'b', 'c'])
      await expect(come(tenant)).rejects.toMatchObject({ code: 'overloaded' })
    await end()
    await end()

    expect(await come('d')).toBe('entered')
    expect(entered).toEqual(['a', 'a', 'b', 'c', 'd'])
  })

  test('admits the first calls of 512 tenants at most', async () => {
    const { entered, come, end } = watched(new FairQueue({ permits: 2, maxQueued: 0 }))
    void come('a')
    void come('a')
    for (let tenant = 1; tenant < 512; tenant++) void come(`${tenant}`)
    await turn()
    expect(entered).toHaveLength(513)

    await expect(come('b')).rejects.toMatchObject({ code: 'overloaded' })
    await end()
    await expect(come('b')).rejects.toMatchObject({ code: 'overloaded' })
    await end()

    expect(await come('b')).toBe('entered')
    await expect(come('c')).rejects.toMatchObject({ code: 'overloaded' })
  })

  test('ignores the abort of a rejected call', async () => {
    const queue = new FairQueue({ permits: 1, maxQueued: 1 })
    const { come } = watched(queue)
    const leaving = new AbortController()
    void come('a')
    void come('a')

    await expect(come('a', 'a3', leaving.signal)).rejects.toMatchObject({ code: 'overloaded' })
    leaving.abort()

    expect(queue.queued).toBe(1)
  })
})

describe('a tenant', () => {
  test('gets its share of the permits at once, even while another tenant holds them all', async () => {
    const { entered, come } = watched(new FairQueue({ permits: 4, maxQueued: 20 }))
    for (let call = 0; call < 6; call++) void come('a', `a${call}`)
    await turn()

    for (let call = 0; call < 3; call++) void come('b', `b${call}`)
    await turn()

    expect(entered).toEqual(['a0', 'a1', 'a2', 'a3', 'b0', 'b1'])
  })

  test('gets at least one permit, even while more tenants than permits hold some', async () => {
    const queue = new FairQueue({ permits: 2, maxQueued: 20 })
    const { entered, come } = watched(queue, { a: 10 })
    for (const tenant of ['a', 'a', 'a', 'b', 'b', 'c', 'c', 'd']) void come(tenant)
    await turn()

    expect(entered).toEqual(['a', 'a', 'b', 'c', 'd'])
    expect(queue.queued).toBe(3)
  })

  test('gets no second call above the permits when the queue is full', async () => {
    const { entered, come } = watched(new FairQueue({ permits: 4, maxQueued: 1 }))
    for (let call = 0; call < 4; call++) void come('a')
    void come('b')

    await expect(come('b')).rejects.toMatchObject({ code: 'overloaded' })

    expect(await come('c')).toBe('entered')
    expect(entered).toEqual(['a', 'a', 'a', 'a', 'b', 'c'])
  })

  test('with more than its share gets no further permit while others have less', async () => {
    const queue = new FairQueue({ permits: 4, maxQueued: 20 })
    const { entered, come, end } = watched(queue)
    for (let call = 0; call < 6; call++) void come('a', `a${call}`)
    await turn()
    for (let call = 0; call < 4; call++) void come('b', `b${call}`)

    for (let ends = 0; ends < 4; ends++) await end()

    // Two of the first four calls of tenant a make up for the two calls above the permits.
    expect(entered).toEqual(['a0', 'a1', 'a2', 'a3', 'b0', 'b1', 'a4', 'a5'])
  })

  test('with twice the weight has twice as many calls', async () => {
    const { entered, come, end } = watched(new FairQueue({ permits: 3, maxQueued: 40 }), { a: 2, b: 1 })
    void come('c')
    for (let call = 0; call < 12; call++) void come('a')
    for (let call = 0; call < 12; call++) void come('b')
    await turn()
    for (let ends = 0; ends < 12; ends++) await end()

    const both = entered.filter((tenant) => tenant !== 'c')
    const ofHeavy = both.filter((tenant) => tenant === 'a')
    expect(ofHeavy.length / both.length).toBeGreaterThan(0.6)
    expect(ofHeavy.length / both.length).toBeLessThan(0.75)
  })

  test('cannot raise the number of all calls: those above the permits count as waiting', async () => {
    const queue = new FairQueue({ permits: 4, maxQueued: 4 })
    const { entered, come } = watched(queue)
    const greedy = Array.from({ length: 8 }, (_, call) => come('a', `a${call}`))
    const refused = Promise.all(
      greedy.slice(-2).map((one) => expect(one).rejects.toMatchObject({ code: 'overloaded' })),
    )
    await turn()

    for (let call = 0; call < 2; call++) void come('b', `b${call}`)

    await refused
    expect(entered).toHaveLength(6)
    expect(queue.queued).toBe(2)
  })

  test('is forgotten when its calls have ended', async () => {
    const { entered, come, end } = watched(new FairQueue({ permits: 4, maxQueued: 10 }))
    for (const tenant of ['a', 'b', 'c', 'd']) {
      void come(tenant)
      await end()
    }
    for (let call = 0; call < 5; call++) void come('e')
    await turn()

    for (let call = 0; call < 3; call++) void come('f')
    await turn()

    // Half of the permits, not a sixth.
    expect(entered.slice(4)).toEqual(['e', 'e', 'e', 'e', 'f', 'f'])
  })
})
