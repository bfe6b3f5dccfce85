/** The clients of Redis that apps have, alone and in a cluster. */
import { createRateLimiter } from '@modelmount/core/limits'
import { type RedisClient, redisLimiterStore } from '@modelmount/core/redis'
import { Redis as IoRedis } from 'ioredis'
import { Redis as IoValkey } from 'iovalkey'
import { createCluster } from 'redis'
import { createClient as createClient5 } from 'redis5'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  connectRedis,
  hasRedis,
  type RunningRedis,
  startRedis,
  startRedisCluster,
} from '../../support/redis.ts'

interface Opened {
  readonly client: RedisClient
  close(): unknown
}

const tokens = (tokens: number) => ({ requests: 1, tokens })

describe.runIf(hasRedis)('with a real server', () => {
  let redis: RunningRedis
  let cluster: Awaited<ReturnType<typeof startRedisCluster>>
  beforeAll(async () => {
    redis = await startRedis()
    cluster = await startRedisCluster()
  })
  afterAll(async () => {
    await redis.stop()
    await cluster.stop()
  })

  const clients: Readonly<Record<string, () => Promise<Opened>>> = {
    'redis 6': async () => {
      const client = await connectRedis({ path: redis.path })
      return { client, close: () => client.close() }
    },
    'redis 5': async () => {
      const client = createClient5({ socket: { path: redis.path, tls: false } })
      await client.connect()
      return { client, close: () => client.close() }
    },
    ioredis: async () => {
      const client = new IoRedis(redis.path)
      return { client, close: () => client.quit() }
    },
    'ioredis with a key prefix, which connects with the first command': async () => {
      const client = new IoRedis(redis.path, { keyPrefix: 'app:', lazyConnect: true })
      return { client, close: () => client.quit() }
    },
    iovalkey: async () => {
      const client = new IoValkey(redis.path)
      return { client, close: () => client.quit() }
    },
    'a cluster of redis 6': async () => {
      const client = createCluster({ rootNodes: [{ socket: { host: '127.0.0.1', port: cluster.port } }] })
      await client.connect()
      return { client, close: () => client.close() }
    },
    'a cluster of ioredis': async () => {
      const client = new IoRedis.Cluster([{ host: '127.0.0.1', port: cluster.port }])
      return { client, close: () => client.quit() }
    },
    'a cluster of iovalkey': async () => {
      const client = new IoValkey.Cluster([{ host: '127.0.0.1', port: cluster.port }])
      return { client, close: () => client.quit() }
    },
  }

  test.each(Object.entries(clients))(
    '%s: several subjects, take, settle and refusals',
    async (name, connect) => {
      const { client, close } = await connect()
      const limiterStore = redisLimiterStore(client, { prefix: name })
      const [limiter, other] = [
        await createRateLimiter({ limiterStore, limits: { tokensPerDay: 1_000, concurrent: 1 } }),
        await createRateLimiter({ limiterStore, limits: { tokensPerDay: 1_000, concurrent: 1 } }),
      ]
      const subjects = [{ id: 'ann {1}' }, { id: 'model:tiny', limits: { tokensPerDay: 2_000 } }]

      const call = await limiter.reserve(subjects, tokens(100))
      await call.take(tokens(200))
      await expect(other.reserve(subjects, tokens(1))).rejects.toMatchObject({
        code: 'rate_limit',
        message: 'This request would exceed the limit of 1 request at the same time. Try again in 1 s.',
      })
      await call.settle(tokens(900))
      await expect(other.reserve(subjects, tokens(200))).rejects.toThrow('limit of 1000 tokens per day')
      await (await other.reserve(subjects, tokens(100))).release()

      const [status] = await other.status(subjects)
      expect(status).toMatchObject({ name: 'tokens', limit: 1_000, remaining: 100 })
      await limiter.close()
      await other.close()
      await close()
    },
  )
})
