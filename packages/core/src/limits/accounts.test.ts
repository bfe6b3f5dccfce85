import { expect, test } from 'vitest'
import { MemoryLimiter } from './memory.ts'

const one = { requests: 1, tokens: 0 }
const minute = 60_000

test('a hundred thousand subjects are forgotten, at once, when they have not come for a minute', async () => {
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

test('who is in debt, or has calls running, is not forgotten before it is over', async () => {
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

test('a call that runs for an hour is settled where its subject was forgotten meanwhile', async () => {
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
