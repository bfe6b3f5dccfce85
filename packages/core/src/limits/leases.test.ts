/** What several processes share, and what is left of one that dies. */
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { databases } from '../../../../test/support/databases.ts'
import type { Database } from '../storage/database.ts'
import { openDatabase } from '../storage/open.ts'
import { openSqlLimiter } from './sql.ts'

const one = { requests: 1, tokens: 0 }
const minute = 60_000

describe.each(databases())('in $name', ({ fresh }) => {
  let database: Database
  const clock = { now: 0 }
  const open = (limits: Parameters<typeof openSqlLimiter>[1]['limits']) =>
    openSqlLimiter(database, { limits, now: () => clock.now })

  beforeEach(async () => {
    clock.now = 1_000
    database = await openDatabase(await fresh())
    return () => database.close()
  })

  const rows = async (table: string): Promise<number> => {
    const [row] = await database.query<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)
    return row?.n ?? 0
  }

  test('two limiters count together', async () => {
    const [here, there] = [await open({ requestsPerMinute: 2 }), await open({ requestsPerMinute: 2 })]
    await here.reserve([{ id: 'ann' }], one)
    await there.reserve([{ id: 'ann' }], one)

    await expect(here.reserve([{ id: 'ann' }], one)).rejects.toThrow('2 requests per minute')
  })

  test('calls of a process that has died are counted no more after a minute; those of others are', async () => {
    const [dead, living] = [await open({ concurrent: 2 }), await open({ concurrent: 2 })]
    await dead.reserve([{ id: 'ann' }], one)
    await living.reserve([{ id: 'ann' }], one)
    await dead.close()

    clock.now += minute - 1
    await living.renew()
    await expect(living.reserve([{ id: 'ann' }], one)).rejects.toThrow('at the same time')
    clock.now += 1
    await living.reserve([{ id: 'ann' }], one)

    await expect(living.reserve([{ id: 'ann' }], one)).rejects.toThrow('at the same time')
    await living.close()
  })

  test('calls that run are renewed by themselves, and the timer ends with them', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    try {
      const limiter = await open({ concurrent: 1 })
      const running = await limiter.reserve([{ id: 'ann' }], one)
      expect(vi.getTimerCount()).toBe(1)
      clock.now += minute - 1

      vi.advanceTimersByTime(20_000)
      // Behind the renewal, which has been asked for before.
      await expect
        .poll(async () => {
          const [lease] = await database.query<{ at: number }>(
            'SELECT expires_at AS at FROM modelmount_limit_leases',
          )
          return lease?.at
        })
        .toBe(clock.now + minute)
      await running.settle(one)

      expect(vi.getTimerCount()).toBe(0)
      expect(await rows('modelmount_limit_leases')).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  test('a call that cannot be settled is renewed no more', async () => {
    const limiter = await open({ concurrent: 1 })
    const running = await limiter.reserve([{ id: 'ann' }], one)
    await database.query('ALTER TABLE modelmount_limits RENAME TO away')
    await expect(running.settle(one)).rejects.toThrow()
    await database.query('ALTER TABLE away RENAME TO modelmount_limits')

    clock.now += minute
    await limiter.renew()

    await limiter.reserve([{ id: 'ann' }], one)
    await limiter.close()
  })

  test('rows of full buckets and of dead calls are pruned, others are not', async () => {
    const limiter = await open({ requestsPerMinute: 60, concurrent: 10 })
    for (let index = 0; index < 250; index++) await limiter.reserve([{ id: `${index}` }], one)
    clock.now += 999
    await limiter.reserve([{ id: 'ann' }], one)
    await limiter.close()

    clock.now += 1
    await limiter.prune()
    expect(await rows('modelmount_limits')).toBe(1)
    expect(await rows('modelmount_limit_leases')).toBe(251)
    clock.now += minute
    await limiter.prune()

    expect(await rows('modelmount_limits')).toBe(0)
    expect(await rows('modelmount_limit_leases')).toBe(0)
  })

  test('calls and pruning at the same time lose nothing', async () => {
    const limiter = await open({ requestsPerMinute: 1_000 })
    const subjects = Array.from({ length: 3 }, (_, index) => ({ id: `${index}` }))

    await Promise.all(
      Array.from({ length: 60 }, async (_, index) => {
        if (index % 10 === 0) await limiter.prune()
        await limiter.reserve(index % 2 ? subjects : [...subjects].reverse(), one)
      }),
    )

    const { limits } = await limiter.reserve(subjects, one)
    expect(limits).toMatchObject([{ remaining: 1_000 - 61 }])
  })
})
