/** Several processes share a rate limit through a real Redis, with its clock. */
import { onTestFinished, test } from 'vitest'
import { connectRedis, hasRedis, startRedis } from '../../support/redis.ts'
import { expectIdealBucket, limit } from '../four-processes.ts'

test.runIf(hasRedis)(
  `four processes with 4,000 requests get what one bucket of ${limit} per minute holds, within 1 %`,
  async () => {
    const redis = await startRedis()
    const client = await connectRedis({ path: redis.path })
    onTestFinished(async () => {
      client.destroy()
      await redis.stop()
    })

    await expectIdealBucket('Redis', `redis:${redis.path}`, async () => {
      const [seconds, microseconds] = (await client.sendCommand(['TIME'])) as unknown as [string, string]
      return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000)
    })
  },
  90_000,
)
