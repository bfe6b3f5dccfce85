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

  await expect(limiter.reserve([daily('7')], one)).rejects.toThrow('1 requests per day')
  expect(limiter.size).toBeLessThanOrEqual(1_002)
  for (const id of ['a', 'b']) {
    clock.now += 86_400_000
    await limiter.reserve([daily(id)], one)
  }
  expect(limiter.size).toBeLessThanOrEqual(4)
})
