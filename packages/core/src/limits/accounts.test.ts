import { expect, test } from 'vitest'
import { MemoryLimiter } from './memory.ts'

const one = { requests: 1, tokens: 0 }
const minute = 60_000

test('a hundred thousand subjects are forgotten at once after a minute without calls', async () => {
  const clock = { now: 0 }
  const limiter = new MemoryLimiter({ requestsPerMinute: 5 }, () => clock.now)
  for (let index = 0; index < 100_000; index++) await limiter.reserve([{ id: `ip:${index}` }], one)
  expect(limiter.size).toBe(100_000)

  clock.now += minute
  await limiter.reserve([{ id: 'ann' }], one)
  clock.now += minute
  await limiter.reserve([{ id: 'ann' }], one)

  expect(limiter.size).toBeLessThanOrEqual(2)
})

test('a subject in debt or with running calls is not forgotten', async () => {
  const clock = { now: 0 }
  const limiter = new MemoryLimiter({ tokensPerMinute: 100, concurrent: 1 }, () => clock.now)
  const debtor = await limiter.reserve([{ id: 'debtor' }], { requests: 1, tokens: 1_000 })
  await debtor.settle({ requests: 1, tokens: 1_000 })
  const slow = await limiter.reserve([{ id: 'slow' }], one)
  const others = async (): Promise<void> => {
    clock.now += minute
    await (await limiter.reserve([{ id: 'other' }], one)).settle(one)
  }
  for (let minutes = 0; minutes < 8; minutes++) await others()

  await expect(limiter.reserve([{ id: 'debtor' }], { requests: 1, tokens: 1 })).rejects.toMatchObject({
    details: { retryAfterMs: minute + 600 },
  })
  await expect(limiter.reserve([{ id: 'slow' }], one)).rejects.toThrow('at the same time')
  await slow.settle(one)
  for (let minutes = 0; minutes < 4; minutes++) await others()

  expect(limiter.size).toBeLessThanOrEqual(2)
})

test('a call that runs for an hour is settled, although its subject was forgotten meanwhile', async () => {
  const clock = { now: 0 }
  const limiter = new MemoryLimiter({ tokensPerMinute: 100 }, () => clock.now)
  const slow = await limiter.reserve([{ id: 'slow' }], { requests: 1, tokens: 50 })
  for (let minutes = 0; minutes < 60; minutes++) {
    clock.now += minute
    await limiter.reserve([{ id: 'other' }], one)
  }

  await slow.settle({ requests: 1, tokens: 80 })

  const { limits } = await limiter.reserve([{ id: 'slow' }], one)
  expect(limits).toMatchObject([{ remaining: 70 }])
})

test('a subject is remembered for its window, and no longer', async () => {
  const clock = { now: 0 }
  const limiter = new MemoryLimiter({ requestsPerMinute: 5 }, () => clock.now)
  const daily = (id: string) => ({ id, limits: { limit: 1, windowMs: 86_400_000 } })
  for (let index = 0; index < 1_000; index++) await limiter.reserve([daily(`${index}`)], one)
  for (let hour = 0; hour < 23; hour++) {
    clock.now += 3_600_000
    await limiter.reserve([{ id: `hour ${hour}` }], one)
  }

  await expect(limiter.reserve([daily('7')], one)).rejects.toThrow('1 request per day')
  expect(limiter.size).toBeLessThanOrEqual(1_002)
  for (const id of ['a', 'b']) {
    clock.now += 86_400_000
    await limiter.reserve([daily(id)], one)
  }
  expect(limiter.size).toBeLessThanOrEqual(4)
})

const endUser = (index: number) => ({
  id: `end user ${index}`,
  limits: { requestsPerMinute: 5, tokensPerMinute: 5, concurrent: 1 },
})

test('rejected calls and status queries store nothing for new subjects', async () => {
  const limiter = new MemoryLimiter({}, () => 0)
  const key = { id: 'key', limits: { requestsPerMinute: 1, tokensPerMinute: 100, tokensPerDay: 100 } }
  await limiter.reserve([key], { requests: 1, tokens: 1 })
  const before = limiter.size

  for (let index = 0; index < 100; index++) {
    await expect(limiter.reserve([key, endUser(index)], one)).rejects.toThrow('1 request per minute.')
    await limiter.status([endUser(index)])
  }

  expect(before).toBe(2)
  expect(limiter.size).toBe(before)
})

test('a call that ends without cost stores nothing', async () => {
  const limiter = new MemoryLimiter({}, () => 0)

  for (let index = 0; index < 100; index++)
    await (await limiter.reserve([endUser(index)], { requests: 1, tokens: 3 })).release()

  expect(limiter.size).toBe(0)
})

test('a key with a new end user in each call cannot exceed its own limit, and its end users are forgotten', async () => {
  const clock = { now: 0 }
  const limiter = new MemoryLimiter({}, () => clock.now)
  const key = { id: 'key', limits: { requestsPerMinute: 60 } }
  let admitted = 0
  let largest = 0
  for (let index = 0; index < 10_000; index++) {
    clock.now += 100
    const call = await limiter.reserve([key, endUser(index)], one).catch(() => undefined)
    if (!call) continue
    admitted++
    await call.settle({ requests: 1, tokens: 5 })
    largest = Math.max(largest, limiter.size)
  }

  // The key admits its full bucket of 60, and one call a second.
  expect(admitted).toBe(60 + 999)
  // The end users of two windows, and the key in each of them.
  expect(largest).toBeLessThanOrEqual(60 + 2 * 60 + 2)
})
