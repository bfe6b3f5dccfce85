import { checkKeys, checkMethods } from '../options/check.ts'
import { type DatabaseLocation, openDatabase } from '../storage/open.ts'
import { checkLimits } from './demand.ts'
import type { ClosableRateLimiter, LimiterStore, Limits } from './limits.ts'
import { MemoryLimiter } from './memory.ts'

/** Options of `createRateLimiter()`. Set at most one of `database` and `limiterStore`. */
export interface RateLimiterOptions {
  /** Limits of each API key, user or address that has no limits of its own. @default none */
  readonly limits?: Limits | undefined
  /**
   * Where the limiter stores its counts: `postgres://…`, the app's own `Pool` of `pg`, or the path of an
   * SQLite file. All processes that use the same database share their counts.
   *
   * @default the memory of this process
   */
  readonly database?: DatabaseLocation | undefined
  /**
   * Where the limiter stores its counts instead of a database: `redisLimiterStore(client)` of `@modelmount/core/redis`.
   *
   * @default none
   */
  readonly limiterStore?: LimiterStore | undefined
  /**
   * Clock for tests, in whole milliseconds.
   *
   * @default the clock of the database or of the `limiterStore`, or a monotonic clock without either
   */
  readonly now?: (() => number) | undefined
}

/**
 * Creates a rate limiter for routes of the host app. Rejects when the database or the `limiterStore` cannot be opened, or when
 * an option is unknown or invalid.
 */
export async function createRateLimiter(options: RateLimiterOptions = {}): Promise<ClosableRateLimiter> {
  checkKeys('', options, ['limits', 'database', 'limiterStore', 'now'])
  const { limits = {}, database: location, limiterStore, now } = options
  checkLimits(limits)
  checkMethods('limiterStore', limiterStore, ['open'])
  if (limiterStore && location !== undefined)
    throw new TypeError('Expected `database` or `limiterStore`, got both')
  if (limiterStore) return limiterStore.open({ limits, now })
  if (location === undefined) return new MemoryLimiter(limits, now)

  const [database, { openSqlLimiter }] = await Promise.all([openDatabase(location), import('./sql.ts')])
  try {
    const limiter = await openSqlLimiter(database, { limits, now })
    return {
      limits,
      reserve: (subjects, cost) => limiter.reserve(subjects, cost),
      status: (subjects) => limiter.status(subjects),
      close: async () => {
        await limiter.close()
        await database.close()
      },
    }
  } catch (error) {
    await database.close()
    throw error
  }
}
