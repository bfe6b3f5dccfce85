/** Rate limiters in memory, in each database, and in Redis where it is installed. Tests set their clock. */

import { afterAll, beforeAll } from 'vitest'
import type { ClosableRateLimiter, Limits } from '../../packages/core/src/limits/limits.ts'
import { MemoryLimiter } from '../../packages/core/src/limits/memory.ts'
import { redisLimiterStore } from '../../packages/core/src/limits/redis/store.ts'
import { openSqlLimiter } from '../../packages/core/src/limits/sql.ts'
import type { Database } from '../../packages/core/src/storage/database.ts'
import { openDatabase } from '../../packages/core/src/storage/open.ts'
import { databases } from './databases.ts'
import { connectRedis, hasRedis, type RunningRedis, startRedis } from './redis.ts'

export interface Clock {
  now: number
}

export interface TestStore {
  readonly name: string
  /** Returns a limiter without any counts. */
  limiter(clock: Clock, limits?: Limits): Promise<ClosableRateLimiter>
}

/** Must be called at the top of a test file, because it registers hooks. */
export function stores(): readonly TestStore[] {
  return [
    {
      name: 'memory',
      limiter: async (clock, limits = {}) => new MemoryLimiter(limits, () => clock.now),
    },
    ...databases().map(({ name, fresh }) => {
      let shared: Promise<Database> | undefined
      afterAll(async () => (await shared)?.close())
      return {
        name,
        limiter: async (clock: Clock, limits: Limits = {}) => {
          shared ??= fresh().then(openDatabase)
          const database = await shared
          const limiter = await openSqlLimiter(database, { limits, now: () => clock.now })
          for (const table of ['modelmount_limits', 'modelmount_limit_leases'])
            await database.query(`DELETE FROM ${table}`)
          return limiter
        },
      }
    }),
    ...(hasRedis ? [redis()] : []),
  ]
}

function redis(): TestStore {
  let running: RunningRedis
  let client: Awaited<ReturnType<typeof connectRedis>>
  beforeAll(async () => {
    running = await startRedis()
    client = await connectRedis({ path: running.path })
  })
  afterAll(async () => {
    client.destroy()
    await running.stop()
  })
  return {
    name: 'Redis',
    limiter: async (clock, limits = {}) => {
      await client.flushAll()
      return redisLimiterStore(client).open({ limits, now: () => clock.now })
    },
  }
}
