/** Limits that several processes share, also after one of the processes dies. */
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { databases } from '../../../../test/support/databases.ts'
import type { LlmError } from '../errors.ts'
import type { Database } from '../storage/database.ts'
import { openDatabase } from '../storage/open.ts'
import { openSqlLimiter } from './sql.ts'

const one = { requests: 1, tokens: 0 }
const lease = 9_000

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

  test('calls of a dead process stop counting after 9 s, and calls of other processes still count', async () => {
    const [dead, living] = [await open({ concurrent: 2 }), await open({ concurrent: 2 })]
    await dead.reserve([{ id: 'ann' }], one)
    await living.reserve([{ id: 'ann' }], one)
    await dead.close()

    clock.now += lease - 1
    await living.renew()
    await expect(living.reserve([{ id: 'ann' }], one)).rejects.toThrow('at the same time')
    clock.now += 1
    await living.reserve([{ id: 'ann' }], one)

    await expect(living.reserve([{ id: 'ann' }], one)).rejects.toThrow('at the same time')
    await living.close()
  })

  test('`retryAfterMs` is 1 s beside running calls, and the rest of the lease beside calls of a dead process', async () => {
    const [dead, living] = [await open({ concurrent: 1 }), await open({ concurrent: 1 })]
    const waitMs = (): Promise<unknown> =>
      living.reserve([{ id: 'ann' }], one).then(
        () => expect.fail('The call was not rejected.'),
        (refusal: LlmError) => refusal.details.retryAfterMs,
      )
    await dead.reserve([{ id: 'ann' }], one)
    await dead.close()
    expect(await waitMs()).toBe(1_000)
    clock.now += 4_001

    expect(await waitMs()).toBe(4_999)
    clock.now += 4_999
    const running = await living.reserve([{ id: 'ann' }], one)
    expect(await waitMs()).toBe(1_000)
    await running.settle()
    await living.close()
  })

  test('after the clock goes back a day, calls of a dead process expire in 9 s, and running calls still count', async () => {
    const [dead, living] = [await open({ concurrent: 1 }), await open({ concurrent: 1 })]
    clock.now = 10 * 86_400_000
    await dead.reserve([{ id: 'ann' }], one)
    await living.reserve([{ id: 'bob' }], one)
    await dead.close()

    clock.now -= 86_400_000
    for (const id of ['ann', 'bob'])
      await expect(living.reserve([{ id }], one)).rejects.toThrow('at the same time')
    clock.now += lease - 1
    await living.renew()
    clock.now += 1

    await living.reserve([{ id: 'ann' }], one)
    await expect(living.reserve([{ id: 'bob' }], one)).rejects.toThrow('at the same time')
    await living.close()
  })

  test('running calls of this process count despite clock jumps, until they end', async () => {
    const limiter = await open({ concurrent: 1, requestsPerMinute: 100 })
    const running = await limiter.reserve([{ id: 'ann' }], one)

    for (const step of [lease, 86_400_000, lease]) {
      clock.now += step
      await expect(limiter.reserve([{ id: 'ann' }], one)).rejects.toThrow('at the same time')
    }
    await running.settle()

    await (await limiter.reserve([{ id: 'ann' }], one)).settle()
    expect(await rows('modelmount_limit_leases')).toBe(0)
    await limiter.close()
  })

  test('a process restores the expired lease of its running call', async () => {
    const [slept, other] = [await open({ concurrent: 1 }), await open({ concurrent: 1 })]
    await slept.reserve([{ id: 'ann' }], one)
    clock.now += lease
    await (await other.reserve([{ id: 'ann' }], one)).settle()
    await slept.renew()

    await expect(other.reserve([{ id: 'ann' }], one)).rejects.toThrow('at the same time')
    await slept.close()
  })

  test('a timer renews the leases of running calls, and stops when the calls end', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    try {
      const limiter = await open({ concurrent: 1 })
      const running = await limiter.reserve([{ id: 'ann' }], one)
      expect(vi.getTimerCount()).toBe(1)
      clock.now += lease - 1

      vi.advanceTimersByTime(2_000)
      // This query runs after the renewal, which was requested first.
      await expect
        .poll(async () => {
          const [lease] = await database.query<{ at: number }>(
            'SELECT expires_at AS at FROM modelmount_limit_leases',
          )
          return lease?.at
        })
        .toBe(clock.now + lease)
      await running.settle(one)

      expect(vi.getTimerCount()).toBe(0)
      expect(await rows('modelmount_limit_leases')).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  test('units that could not be taken are reported, and not counted at settlement', async () => {
    const limiter = await open({ tokensPerMinute: 1_000 })
    const running = await limiter.reserve([{ id: 'ann' }], { requests: 1, tokens: 100 })
    await database.query('ALTER TABLE modelmount_limits RENAME TO away')
    await expect(running.take({ requests: 0, tokens: 300 })).rejects.toThrow()
    await database.query('ALTER TABLE away RENAME TO modelmount_limits')

    await running.take({ requests: 0, tokens: 300 })
    await running.settle({ requests: 1, tokens: 500 })

    const { limits } = await limiter.reserve([{ id: 'ann' }], { requests: 1, tokens: 0 })
    expect(limits).toMatchObject([{ remaining: 500 }])
  })

  test('the lease of a call whose settlement failed is no longer renewed', async () => {
    const limiter = await open({ concurrent: 1 })
    const running = await limiter.reserve([{ id: 'ann' }], one)
    await database.query('ALTER TABLE modelmount_limits RENAME TO away')
    await expect(running.settle(one)).rejects.toThrow()
    await database.query('ALTER TABLE away RENAME TO modelmount_limits')

    clock.now += lease
    await limiter.renew()

    await limiter.reserve([{ id: 'ann' }], one)
    await limiter.close()
  })

  test('only rows of full buckets and of expired calls are pruned', async () => {
    const limiter = await open({ requestsPerMinute: 60, concurrent: 10 })
    for (let index = 0; index < 250; index++) await limiter.reserve([{ id: `${index}` }], one)
    clock.now += 999
    await limiter.reserve([{ id: 'ann' }], one)
    await limiter.close()

    clock.now += 1
    await limiter.prune()
    expect(await rows('modelmount_limits')).toBe(1)
    expect(await rows('modelmount_limit_leases')).toBe(251)
    clock.now += lease
    await limiter.prune()

    expect(await rows('modelmount_limits')).toBe(0)
    expect(await rows('modelmount_limit_leases')).toBe(0)
  })

  test('calls and pruning at the same time lose no counts', async () => {
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
