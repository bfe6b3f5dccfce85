import { checkKeys } from '../options/check.ts'
import { type DatabaseLocation, openDatabase } from '../storage/open.ts'
import { checkLimits } from './demand.ts'
import type { ClosableRateLimiter, Limits } from './limits.ts'
import { MemoryLimiter } from './memory.ts'

export interface RateLimiterOptions {
  /** Of each subject that brings none of its own. @default none */
  readonly limits?: Limits | undefined
  /**
   * Shared by all processes that name the same one: `postgres://…`, the app's own `Pool` of `pg`, or the path of an SQLite file.
   *
   * @default the memory of this process
   */
  readonly database?: DatabaseLocation | undefined
  /** For tests: a clock in whole milliseconds. @default that of the database, or one that nobody can set */
  readonly now?: (() => number) | undefined
}

/** A limiter for routes of the app. Rejects where the database cannot be opened, and where an option is wrong or misspelt. */
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
