/** Rate limiters in memory and in each database. Tests set their clock. */

import { afterAll } from 'vitest'
import type { ClosableRateLimiter, Limits } from '../../packages/core/src/limits/limits.ts'
import { MemoryLimiter } from '../../packages/core/src/limits/memory.ts'
import { openSqlLimiter } from '../../packages/core/src/limits/sql.ts'
import type { Database } from '../../packages/core/src/storage/database.ts'
import { openDatabase } from '../../packages/core/src/storage/open.ts'
import { databases } from './databases.ts'

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
  ]
}
