/** The arithmetic of the script in Redis, and the keys that it leaves. */
import { createRateLimiter } from '@modelmount/core/limits'
import { redisLimiterStore } from '@modelmount/core/redis'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  fullLevel,
  levelAfter,
  levelAt,
  maxLevel,
  resetMs,
  waitMs,
} from '../../../packages/core/src/limits/bucket.ts'
import { bucketFunctions } from '../../../packages/core/src/limits/redis/script.ts'
import { connectRedis, hasRedis, type RunningRedis, startRedis } from '../../support/redis.ts'

const one = { requests: 1, tokens: 0 }

describe.runIf(hasRedis)('in Redis', () => {
  let redis: RunningRedis
  let client: Awaited<ReturnType<typeof connectRedis>>

  beforeAll(async () => {
    redis = await startRedis()
    client = await connectRedis({ path: redis.path })
  })
  beforeEach(() => client.flushAll())
  afterAll(async () => {
    client.destroy()
    await redis.stop()
  })

  const open = (prefix?: string) =>
    createRateLimiter({
      limits: { requestsPerMinute: 600, concurrent: 3 },
      limiterStore: redisLimiterStore(client, { prefix }),
    })
  const counted = async () =>
    (await client.keys('*')).filter((key) => !key.startsWith('{modelmount}:reply:')).sort()

  test('arithmetic in Lua equals arithmetic in JavaScript, to the last digit', async () => {
    const evaluate = `${bucketFunctions}
      local size = { limit = tonumber(ARGV[1]), windowMs = tonumber(ARGV[2]) }
      local level, units, elapsed = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
      local numbers = {
        levelAt({ level = level, at = 7 }, size, 7 + elapsed), levelAfter(level, size, units),
        waitMs(level, size, math.abs(units)), msUntil(fullLevel(size), level, size),
      }
      for index, number in ipairs(numbers) do numbers[index] = digits(number) end
      return numbers`
    const sizes = fc
      .integer({ min: 1, max: 31_622_400_000 })
      .chain((windowMs) =>
        fc.integer({ min: 1, max: Math.floor(maxLevel / windowMs) }).map((limit) => ({ limit, windowMs })),
      )

    await fc.assert(
      fc.asyncProperty(
        ...[sizes, fc.double({ min: -1, max: 1, noNaN: true })],
        ...[fc.integer({ min: -1e9, max: 1e9 }), fc.integer({ min: -1e6, max: 1e13 })],
        async (size, share, units, elapsed) => {
          const level = Math.trunc(share * fullLevel(size))
          const given = [size.limit, size.windowMs, level, units, elapsed].map(String)
          const reply = (await client.eval(evaluate, { arguments: given })) as string[]

          expect(reply.map(BigInt)).toEqual(
            [
              levelAt({ level, at: 7 }, size, 7 + elapsed),
              levelAfter(level, size, units),
              waitMs(level, size, Math.abs(units)),
              resetMs(level, size),
            ].map(BigInt),
          )
        },
      ),
      { numRuns: 2_000 },
    )
  })

  test('a bucket expires when it is full, and a status or a rejected call stores nothing', async () => {
    const limiter = await open()
    const call = await limiter.reserve([{ id: 'ann' }], { requests: 2, tokens: 0 })
    expect(await counted()).toEqual(['{modelmount}:concurrent:ann', '{modelmount}:requests:ann'])
    // Two requests of 600 per minute.
    expect(await client.pTTL('{modelmount}:requests:ann')).toBeGreaterThan(100)
    expect(await client.pTTL('{modelmount}:requests:ann')).toBeLessThanOrEqual(200)
    expect(await client.pTTL('{modelmount}:concurrent:ann')).toBeLessThanOrEqual(9_000)

    await call.settle()
    await expect.poll(counted).toEqual([])
    await limiter.status([{ id: 'bob' }])
    const strict = [{ id: 'eve', limits: { requestsPerMinute: 1 } }]
    await limiter.reserve(strict, one)
    const before = await client.keys('*')
    await expect(limiter.reserve([{ id: 'mallory' }, ...strict], one)).rejects.toThrow('1 request per minute')

    // Replies of earlier commands expire meanwhile.
    expect(before).toEqual(expect.arrayContaining(await client.keys('*')))
    expect(await counted()).toEqual(['{modelmount}:requests:eve'])
    await limiter.close()
  })

  test('apps with the same prefix share their counts, and others do not', async () => {
    const [first, second, other] = [await open('shop'), await open('shop'), await open('blog')]
    const limits = { limit: 2, windowMs: 3_600_000 }
    await first.reserve([{ id: 'ann', limits }], one)
    await second.reserve([{ id: 'ann', limits }], one)

    await expect(first.reserve([{ id: 'ann', limits }], one)).rejects.toThrow('2 requests per hour')
    await other.reserve([{ id: 'ann', limits }], one)
    expect(await client.keys('*:requests/3600000:ann')).toHaveLength(2)
    await Promise.all([first, second, other].map((limiter) => limiter.close()))
  })

  test('a command that the client sends twice takes its units once, and gets the same reply', async () => {
    const sent: { sha1: string; options: { keys: string[]; arguments: string[] } }[] = []
    const recording = {
      eval: (source: string, options: { keys: string[]; arguments: string[] }) =>
        client.eval(source, options),
      evalSha: (sha1: string, options: { keys: string[]; arguments: string[] }) => {
        sent.push({ sha1, options })
        return client.evalSha(sha1, options)
      },
    }
    const limiter = await redisLimiterStore(recording).open({ limits: { tokensPerMinute: 1_000 } })
    await limiter.reserve([{ id: 'ann' }], { requests: 1, tokens: 900 })
    const { sha1, options } = sent.at(-1) as (typeof sent)[number]

    const replies = [await client.evalSha(sha1, options), await client.evalSha(sha1, options)]

    expect(replies[0]).toBe(replies[1])
    expect(Number((await limiter.status([{ id: 'ann' }]))[0]?.remaining)).toBeLessThan(110)
    expect(Number((await limiter.status([{ id: 'ann' }]))[0]?.remaining)).toBeGreaterThanOrEqual(100)
    await limiter.close()
  })

  test('options are checked', async () => {
    const wrong = (call: () => unknown) => expect(call).toThrow(TypeError)
    wrong(() => redisLimiterStore({} as never))
    wrong(() => redisLimiterStore(undefined as never))
    wrong(() => redisLimiterStore(client, { prefix: '{mine}' }))
    wrong(() => redisLimiterStore(client, { prefix: '' }))
    wrong(() => redisLimiterStore(client, { perfix: 'mine' } as never))
    const limiterStore = redisLimiterStore(client)
    await expect(createRateLimiter({ limiterStore, database: ':memory:' })).rejects.toThrow('got both')
    await expect(createRateLimiter({ limiterStore: client as never })).rejects.toThrow('method open()')
  })
})
