/** Redis that is killed, stopped, full, or that holds other values. */
import { createLlm } from '@modelmount/core'
import { createRateLimiter } from '@modelmount/core/limits'
import { redisLimiterStore } from '@modelmount/core/redis'
import { scriptedEngine } from '@modelmount/core/testing'
import { rateLimit } from '@modelmount/express'
import express from 'express'
import { Redis as IoRedis } from 'ioredis'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { openRedisLimiter } from '../../../packages/core/src/limits/redis/limiter.ts'
import { listen } from '../../support/listen.ts'
import { pacedEngine } from '../../support/paced-engine.ts'
import { connectRedis, hasRedis, type RunningRedis, startRedis } from '../../support/redis.ts'
import { chats, serveScripted } from '../../support/served.ts'

const tokens = (tokens: number) => ({ requests: 1, tokens })
const ann = [{ id: 'ann', limits: { tokensPerDay: 1_000 } }]
const unavailable = {
  code: 'unavailable',
  status: 503,
  message: 'The limiter store is unavailable. Try again in 1 s.',
  details: { retryAfterMs: 1_000 },
}

describe.runIf(hasRedis)('in Redis', () => {
  let redis: RunningRedis
  let client: Awaited<ReturnType<typeof connectRedis>>

  beforeEach(async () => {
    redis = await startRedis()
    client = await connectRedis({ path: redis.path })
    return async () => {
      client.destroy()
      await redis.stop()
    }
  })

  const open = async () => {
    const limiter = await openRedisLimiter(client, { limits: {}, prefix: 'modelmount' })
    onTestFinished(() => limiter.close())
    const remaining = async () => (await limiter.status(ann))[0]?.remaining
    return { limiter, remaining }
  }
  const isBack = (promise: () => Promise<unknown>) =>
    expect.poll(() => promise().then(Boolean, () => false), { interval: 20, timeout: 10_000 }).toBe(true)

  test('each API answers 503 with retry-after while Redis is away, and 200 when it is back', async () => {
    const logger = { warn: vi.fn(), error: vi.fn() }
    const { post } = await serveScripted('/nowhere', {
      models: [],
      limiterStore: redisLimiterStore(client),
      modelLimits: { tiny: { requestsPerMinute: 1_000 } },
      logger,
    })
    for (const { path, body } of chats) expect([path, (await post(path, body)).status]).toEqual([path, 200])

    await redis.kill()
    for (const { path, body } of chats) {
      const response = await post(path, body)
      expect([path, response.status]).toEqual([path, 503])
      expect(response.headers.get('retry-after')).toBe('1')
      const text = await response.text()
      expect(text).toContain('The limiter store is unavailable. Try again in 1 s.')
      expect(text).not.toMatch(/\bat |redis/i)
    }
    await redis.start()

    for (const { path, body } of chats) await isBack(async () => (await post(path, body)).status === 200)
    expect(logger.error).toHaveBeenCalledWith(
      expect.objectContaining({ err: expect.objectContaining({ code: 'unavailable' }) }),
      unavailable.message,
    )
  })

  test('an answer that runs while Redis is killed goes on to its end, and its running call ends', async () => {
    const engine = pacedEngine(scriptedEngine('one two three four five six'))
    const onError = vi.fn()
    const { llm } = await serveScripted('/nowhere', {
      ...{ engine, models: [], limiterStore: redisLimiterStore(client) },
      logger: { warn: vi.fn(), error: onError },
    })
    const caller = { id: 'ann', limits: { tokensPerMinute: 1_000, concurrent: 1 } }
    const pieces: string[] = []
    const reading = (async () => {
      for await (const piece of llm.chat('Hi', { model: 'tiny', caller, stream: true })) pieces.push(piece)
    })()
    engine.allow(2)
    await expect.poll(() => pieces.length).toBeGreaterThan(0)

    await redis.kill()
    await expect.poll(() => client.isReady).toBe(false)
    engine.allow(1_000)
    await reading
    expect(pieces.join('')).toBe('one two three four five six')
    expect(onError).toHaveBeenCalledWith(
      expect.objectContaining({ err: expect.objectContaining({ code: 'unavailable' }) }),
      unavailable.message,
    )
    await redis.start()

    const call = () => llm.chat('Hi', { model: 'tiny', caller })
    await isBack(async () => (await call()).text === 'one two three four five six')
  })

  test('the health says what is wrong while Redis is away or full, and that all is well when it is back', async () => {
    const llm = await createLlm({
      engine: scriptedEngine('Hello.'),
      models: [],
      limiterStore: redisLimiterStore(client),
    })
    onTestFinished(() => llm.close())
    const check = async () => {
      const { status, checks } = await llm.checkHealth()
      return [status, checks.limiterStore]
    }
    const isOk = ['ok', { status: 'ok' }]
    const isUnavailable = ['unavailable', { status: 'unavailable', reason: unavailable.message }]
    // Results are kept for half a second.
    const becomes = (expected: unknown) =>
      expect.poll(check, { interval: 50, timeout: 10_000 }).toEqual(expected)
    expect(await check()).toEqual(isOk)

    await client.configSet({ 'maxmemory-policy': 'noeviction', maxmemory: '1' })
    await becomes(isUnavailable)
    await client.configSet('maxmemory', '0')
    await becomes(isOk)
    await redis.kill()
    await becomes(isUnavailable)
    await redis.start()
    await becomes(isOk)
  })

  test('`passOnStoreError` decides about requests of own routes while Redis is away', async () => {
    const limiter = await createRateLimiter({
      limits: { requestsPerMinute: 1 },
      limiterStore: redisLimiterStore(client),
    })
    const answer: express.RequestHandler = (_, response) => void response.send('ok')
    const server = await listen(
      express()
        .get('/strict', rateLimit(limiter), answer)
        .get('/lax', rateLimit(limiter, { passOnStoreError: true }), answer),
    )
    onTestFinished(async () => {
      await server.close()
      await limiter.close()
    })
    const status = async (path: string) => (await fetch(server.url + path)).status
    expect([await status('/strict'), await status('/strict')]).toEqual([200, 429])

    await redis.kill()
    expect([await status('/strict'), await status('/lax')]).toEqual([503, 200])
    await redis.start()

    await expect.poll(() => status('/strict'), { interval: 20, timeout: 10_000 }).toBe(429)
  })

  test('a settlement that fails while Redis is away is retried when it is back', async () => {
    const { limiter, remaining } = await open()
    const call = await limiter.reserve(ann, tokens(100))
    await redis.kill()
    await expect.poll(() => client.isReady).toBe(false)

    await expect(call.settle(tokens(700))).rejects.toMatchObject(unavailable)
    await limiter.renew()
    await redis.start()
    await isBack(() => limiter.status(ann))
    // The restarted server has lost the reserved tokens, so only the other 600 are taken.
    await limiter.renew()
    await limiter.renew()
    await call.settle(tokens(0))

    expect(await remaining()).toBe(400)
  })

  test('calls that ran when Redis was killed count again when it is back', async () => {
    const { limiter } = await open()
    const one = [{ id: 'ann', limits: { concurrent: 1 } }]
    const running = await limiter.reserve(one, tokens(0))
    await redis.kill()
    await redis.start()
    await isBack(() => limiter.renew().then(() => true))

    await expect(limiter.reserve(one, tokens(0))).rejects.toThrow('at the same time')
    await running.settle()
    await (await limiter.reserve(one, tokens(0))).settle()
  })

  test('kills during many calls leave only typed errors, and limits apply again', async () => {
    const { limiter } = await open()
    const strict = [{ id: 'all', limits: { limit: 100, windowMs: 86_400_000 } }]
    const outcomes: Record<string, number> = {}
    let isOver = false
    const ask = async () => {
      while (!isOver) {
        const outcome = await limiter.reserve(strict, tokens(0)).then(
          () => 'admitted',
          (error: { code?: string }) => error.code ?? String(error),
        )
        outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
        await new Promise(setImmediate)
      }
    }
    const asking = Array.from({ length: 8 }, ask)
    /** Waits for one more of these outcomes. A call that the client has queued fails after 2 s. */
    const next = async (outcome: string) => {
      const before = outcomes[outcome] ?? 0
      await expect
        .poll(() => outcomes[outcome] ?? 0, { interval: 5, timeout: 10_000 })
        .toBeGreaterThan(before)
    }
    for (let kills = 0; kills < 3; kills++) {
      await next('rate_limit')
      await redis.kill()
      await next('unavailable')
      await redis.start()
    }
    await next('rate_limit')
    isOver = true
    await Promise.all(asking)

    expect(Object.keys(outcomes).sort()).toEqual(['admitted', 'rate_limit', 'unavailable'])
    // Each start empties the server, so it admits another full bucket. Calls that have failed may have taken some of it.
    expect(outcomes.admitted).toBeLessThanOrEqual(400)
    expect(outcomes.admitted).toBeGreaterThan(350)
  })

  test('a stopped server costs each call 2 s at most, and its late work is counted', async () => {
    const { limiter, remaining } = await open()
    const call = await limiter.reserve(ann, tokens(100))
    process.kill(redis.pid, 'SIGSTOP')
    const startedAt = performance.now()
    const [reserved, settled] = await Promise.allSettled([
      limiter.reserve(ann, tokens(50)),
      call.settle(tokens(300)),
    ])
    const tookMs = performance.now() - startedAt
    process.kill(redis.pid, 'SIGCONT')

    for (const outcome of [reserved, settled])
      expect(outcome).toMatchObject({ status: 'rejected', reason: unavailable })
    expect(tookMs).toBeGreaterThan(1_900)
    expect(tookMs).toBeLessThan(5_000)
    // Nothing is retried, because the server runs both when it continues.
    await expect.poll(remaining).toBe(650)
    await limiter.renew()
    expect(await remaining()).toBe(650)
  })

  test('a server that has forgotten the script gets it again', async () => {
    const { limiter, remaining } = await open()
    await limiter.reserve(ann, tokens(100))
    await client.scriptFlush()
    await Promise.all(Array.from({ length: 20 }, () => limiter.reserve(ann, tokens(10))))

    expect(await remaining()).toBe(700)
  })

  test.each([
    ['a list', () => client.lPush('{modelmount}:tokens/86400000:ann', 'x')],
    ['another text', () => client.set('{modelmount}:tokens/86400000:ann', 'a lot')],
  ])('%s in place of a bucket is a typed error, and changes no other bucket', async (_, store) => {
    const { limiter } = await open()
    const other = { id: 'bob', limits: { tokensPerDay: 1_000 } }
    await store()

    await expect(limiter.reserve([other, ...ann], tokens(100))).rejects.toMatchObject(unavailable)
    await expect(limiter.status(ann)).rejects.toMatchObject(unavailable)
    expect(await limiter.status([other])).toMatchObject([{ remaining: 1_000 }])
    await client.del('{modelmount}:tokens/86400000:ann')
    await limiter.reserve([other, ...ann], tokens(100))
  })

  test('a full server is a typed error, and settlements are retried when it has memory again', async () => {
    const { limiter, remaining } = await open()
    const call = await limiter.reserve(ann, tokens(100))
    await client.configSet({ 'maxmemory-policy': 'noeviction', maxmemory: '1' })

    await expect(limiter.reserve(ann, tokens(100))).rejects.toMatchObject(unavailable)
    await expect(call.settle(tokens(300))).rejects.toMatchObject(unavailable)
    await client.configSet('maxmemory', '0')
    await limiter.renew()

    expect(await remaining()).toBe(700)
  })

  test('ioredis queues no calls while Redis is away, and repeats none that were lost', async () => {
    const io = new IoRedis(redis.path, { retryStrategy: () => 20, maxRetriesPerRequest: null })
    io.on('error', () => {})
    onTestFinished(() => io.disconnect())
    const limiter = await redisLimiterStore(io).open({ limits: { tokensPerDay: 1_000 } })
    onTestFinished(() => limiter.close())
    await limiter.reserve([{ id: 'ann' }], tokens(100))

    // The server runs the command, but its reply is lost. So ioredis sends the command again.
    process.kill(redis.pid, 'SIGSTOP')
    const lost = limiter.reserve([{ id: 'ann' }], tokens(100))
    await expect
      .poll(() => (io as unknown as { commandQueue: { length: number } }).commandQueue.length)
      .toBe(1)
    io.stream.destroy()
    process.kill(redis.pid, 'SIGCONT')
    await lost
    expect(await limiter.status([{ id: 'ann' }])).toMatchObject([{ remaining: 800 }])

    await redis.kill()
    await expect.poll(() => io.status !== 'ready').toBe(true)
    await expect(limiter.reserve([{ id: 'ann' }], tokens(100))).rejects.toMatchObject(unavailable)
    await redis.start()
    await isBack(() => limiter.status([{ id: 'ann' }]))
    expect(await limiter.status([{ id: 'ann' }])).toMatchObject([{ remaining: 1_000 }])
  })

  test('a limiter does not open while Redis is away', async () => {
    await redis.kill()
    await expect.poll(() => client.isReady).toBe(false)

    await expect(createRateLimiter({ limiterStore: redisLimiterStore(client) })).rejects.toMatchObject(
      unavailable,
    )
  })
})
