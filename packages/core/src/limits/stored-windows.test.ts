/** Stored buckets with a window in their row, next to rows of earlier versions. */
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { databases } from '../../../../test/support/databases.ts'
import type { Database } from '../storage/database.ts'
import { openDatabase } from '../storage/open.ts'
import { createRouteLimit } from './route-limit.ts'
import type { RouteLimitOptions } from './route-limit-options.ts'
import { openSqlLimiter } from './sql.ts'

describe.each(databases())('in $name', ({ fresh }) => {
  let database: Database
  const clock = { now: 1_000_000 }

  beforeEach(async () => {
    database = await openDatabase(await fresh())
    clock.now = 1_000_000
    return () => database.close()
  })

  /** Opens a new limiter, as a new process does, and returns the remaining requests. */
  const remaining = async (options: RouteLimitOptions<string>, requests = 0) => {
    const limiter = await openSqlLimiter(database, { limits: {}, now: () => clock.now })
    onTestFinished(() => limiter.close())
    const { headers } = await createRouteLimit<string>(
      limiter,
      { ...options, requests },
      (ip) => ip,
    )('203.0.113.7')
    return headers['x-ratelimit-remaining-requests']
  }
  const rows = () =>
    database.query<{ subject: string; name: string }>('SELECT subject, name FROM modelmount_limits')

  test('a row of an earlier version is a bucket of a minute, and keeps its level', async () => {
    await remaining({ limit: 10 })
    await database.query('DELETE FROM modelmount_limits')
    await database.query(
      'INSERT INTO modelmount_limits (subject, name, level, at, full_at) VALUES (?, ?, ?, ?, ?)',
      ['[10,,] ip:203.0.113.7', 'requests', 180_000, clock.now, clock.now + 42_000],
    )

    expect(await remaining({ limits: { requestsPerMinute: 10 } })).toBe('3')
    expect(await remaining({ limit: 10, windowMs: 60_000 }, 1)).toBe('2')
    clock.now += 6_000
    expect(await remaining({ limit: 10 })).toBe('3')
    expect(await rows()).toEqual([{ subject: '[10,,] ip:203.0.113.7', name: 'requests' }])
  })

  test('a bucket of another window keeps its level over a restart, in a row with its window', async () => {
    const options = { limit: 10, windowMs: 3_600_000 }

    expect(await remaining(options, 7)).toBe('3')
    clock.now += 720_000
    expect(await remaining(options)).toBe('5')
    expect(await rows()).toEqual([{ subject: '[10/3600000] ip:203.0.113.7', name: 'requests/3600000' }])
  })

  test('a named route with another window has another bucket', async () => {
    expect(await remaining({ name: 'export', limit: 10 }, 7)).toBe('3')
    expect(await remaining({ name: 'export', limit: 10, windowMs: 3_600_000 }, 1)).toBe('9')
    expect(await remaining({ name: 'export', limit: 10 })).toBe('3')
  })

  test('pruning removes a bucket when its window has refilled it', async () => {
    const limiter = await openSqlLimiter(database, { limits: {}, now: () => clock.now })
    onTestFinished(() => limiter.close())
    const limits = { limit: 1, windowMs: 86_400_000 }
    await (await limiter.reserve([{ id: 'ann', limits }], { requests: 1, tokens: 0 })).settle()

    clock.now += 86_399_999
    await limiter.prune()
    expect(await rows()).toHaveLength(1)
    clock.now += 1
    await limiter.prune()
    expect(await rows()).toHaveLength(0)
  })
})
