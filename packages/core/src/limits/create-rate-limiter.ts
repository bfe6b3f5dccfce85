import { checkKeys } from '../options/check.ts'
import { type DatabaseLocation, openDatabase } from '../storage/open.ts'
import { checkLimits } from './demand.ts'
import type { ClosableRateLimiter, Limits } from './limits.ts'
import { MemoryLimiter } from './memory.ts'

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
   * Clock for tests, in whole milliseconds.
   *
   * @default the clock of the database, or a monotonic clock without a database
   */
  readonly now?: (() => number) | undefined
}

/**
 * Creates a rate limiter for routes of the host app. Rejects when the database cannot be opened, or when an
 * option is unknown or invalid.
 */
export async function createRateLimiter(options: RateLimiterOptions = {}): Promise<ClosableRateLimiter> {
  checkKeys('', options, ['limits', 'database', 'now'])
  const { limits = {}, database: location, now } = options
  checkLimits(limits)
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
