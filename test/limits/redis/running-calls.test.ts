/** Limits of running calls that several processes share in Redis, also after one of the processes dies. */
import type { LlmError } from '@modelmount/core'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { openRedisLimiter } from '../../../packages/core/src/limits/redis/limiter.ts'
import { connectRedis, hasRedis, type RunningRedis, startRedis } from '../../support/redis.ts'

const one = { requests: 1, tokens: 0 }
const lease = 9_000
const day = 86_400_000

describe.runIf(hasRedis)('in Redis', () => {
  let redis: RunningRedis
  let client: Awaited<ReturnType<typeof connectRedis>>
  const clock = { now: 0 }
  const open = (concurrent: number) =>
    openRedisLimiter(client, { limits: { concurrent }, prefix: 'modelmount', now: () => clock.now })
  const leases = () => client.zRange('{modelmount}:concurrent:ann', 0, -1)

  beforeAll(async () => {
    redis = await startRedis()
    client = await connectRedis({ path: redis.path })
  })
  beforeEach(async () => {
    clock.now = 1_000
    await client.flushAll()
  })
  afterAll(async () => {
    client.destroy()
    await redis.stop()
  })

  test('calls of a dead process stop counting after 9 s, and calls of other processes still count', async () => {
    const [dead, living] = [await open(2), await open(2)]
    await dead.reserve([{ id: 'ann' }], one)
    await living.reserve([{ id: 'ann' }], one)
    await dead.close()

    clock.now += lease - 1
    await living.renew()
    await expect(living.reserve([{ id: 'ann' }], one)).rejects.toThrow('at the same time')
    clock.now += 1
    await living.reserve([{ id: 'ann' }], one)

    await expect(living.reserve([{ id: 'ann' }], one)).rejects.toThrow('at the same time')
    await living.close()
  })

  test('`retryAfterMs` is 1 s beside running calls, and the rest of the lease beside calls of a dead process', async () => {
    const [dead, living] = [await open(1), await open(1)]
    const waitMs = (): Promise<unknown> =>
      living.reserve([{ id: 'ann' }], one).then(
        () => expect.fail('The call was not rejected.'),
        (refusal: LlmError) => refusal.details.retryAfterMs,
      )
    await dead.reserve([{ id: 'ann' }], one)
    await dead.close()
    expect(await waitMs()).toBe(1_000)
    clock.now += 4_001

    expect(await waitMs()).toBe(4_999)
    clock.now += 4_999
    await (await living.reserve([{ id: 'ann' }], one)).settle()
    expect(await leases()).toEqual([])
    await living.close()
  })

  test('after the clock goes back a day, calls of a dead process expire in 9 s, and running calls still count', async () => {
    const [dead, living] = [await open(1), await open(1)]
    clock.now = 10 * day
    await dead.reserve([{ id: 'ann' }], one)
    await living.reserve([{ id: 'bob' }], one)
    await dead.close()

    clock.now -= day
    for (const id of ['ann', 'bob'])
      await expect(living.reserve([{ id }], one)).rejects.toThrow('at the same time')
    clock.now += lease - 1
    await living.renew()
    clock.now += 1

    await living.reserve([{ id: 'ann' }], one)
    await expect(living.reserve([{ id: 'bob' }], one)).rejects.toThrow('at the same time')
    await living.close()
  })

  test('running calls of this process count despite clock jumps, until they end', async () => {
    const limiter = await open(1)
    const running = await limiter.reserve([{ id: 'ann' }], one)

    for (const step of [lease, day, lease]) {
      clock.now += step
      await expect(limiter.reserve([{ id: 'ann' }], one)).rejects.toThrow('at the same time')
    }
    await running.settle()

    await (await limiter.reserve([{ id: 'ann' }], one)).settle()
    expect(await leases()).toEqual([])
    await limiter.close()
  })

  test('a process restores the leases of its running calls that the server has lost', async () => {
    const [slept, other] = [await open(2), await open(2)]
    await slept.reserve([{ id: 'ann' }], one)
    await slept.reserve([{ id: 'ann' }], one)
    await client.flushAll()
    await slept.renew()

    expect(await leases()).toHaveLength(2)
    await expect(other.reserve([{ id: 'ann' }], one)).rejects.toThrow('at the same time')
    await slept.close()
  })

  test('a timer renews the leases of running calls, and stops when the calls end', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    try {
      const limiter = await open(1)
      const running = await limiter.reserve([{ id: 'ann' }], one)
      expect(vi.getTimerCount()).toBe(1)
      clock.now += lease - 1

      vi.advanceTimersByTime(2_000)
      await expect
        .poll(async () => (await client.zRangeWithScores('{modelmount}:concurrent:ann', 0, -1))[0]?.score)
        .toBe(clock.now + lease)
      await running.settle(one)

      expect(vi.getTimerCount()).toBe(0)
      expect(await leases()).toEqual([])
    } finally {
      vi.useRealTimers()
    }
  })
})
