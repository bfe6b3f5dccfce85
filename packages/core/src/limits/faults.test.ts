/** Rate limits in a database that fails or blocks. */
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { databases } from '../../../../test/support/databases.ts'
import { type Database, UncertainOutcome } from '../storage/database.ts'
import { openDatabase } from '../storage/open.ts'
import { openSqlLimiter } from './sql.ts'

const tokens = (tokens: number) => ({ requests: 1, tokens })

describe.each(databases())('in $name', ({ name, fresh }) => {
  let location: string
  let database: Database
  /**
   * The error of the next transactions. `hasHappened` tells whether they are committed before they reject.
   */
  let fault: { readonly error: Error; readonly hasHappened: boolean } | undefined
  const clock = { now: 1_000 }

  beforeEach(async () => {
    fault = undefined
    location = await fresh()
    database = await openDatabase(location)
    return () => database.close()
  })

  const open = async (limits: Parameters<typeof openSqlLimiter>[1]['limits']) => {
    const faulty: Database = {
      clock: database.clock,
      skipLocked: database.skipLocked,
      query: (sql, parameters) => database.query(sql, parameters),
      transaction: async (work, options) => {
        const now = fault
        if (now && !now.hasHappened) throw now.error
        const result = await database.transaction(work, options)
        if (now) throw now.error
        return result
      },
      close: () => database.close(),
    }
    const limiter = await openSqlLimiter(faulty, { limits, now: () => clock.now })
    onTestFinished(() => limiter.close())
    const remaining = async () =>
      (await limiter.reserve([{ id: 'ann' }], { requests: 0, tokens: 0 })).limits[0]?.remaining
    return { limiter, remaining }
  }
  const away = new Error('the database is away')

  test('a settlement that fails without the database is retried when it is back, and applied once', async () => {
    const { limiter, remaining } = await open({ tokensPerMinute: 1_000, concurrent: 1 })
    const reservation = await limiter.reserve([{ id: 'ann' }], tokens(100))

    fault = { error: away, hasHappened: false }
    await expect(reservation.settle(tokens(700))).rejects.toThrow('the database is away')
    await limiter.renew()
    fault = undefined
    await limiter.renew()
    await limiter.renew()
    await reservation.settle(tokens(0))

    expect(await remaining()).toBe(300)
  })

  test('a timer retries failed settlements, and closing the limiter retries them, too', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const { limiter, remaining } = await open({ tokensPerMinute: 1_000 })
    const [first, second] = [
      await limiter.reserve([{ id: 'ann' }], tokens(100)),
      await limiter.reserve([{ id: 'ann' }], tokens(100)),
    ]

    fault = { error: away, hasHappened: false }
    await expect(first.settle(tokens(300))).rejects.toThrow()
    fault = undefined
    await vi.advanceTimersByTimeAsync(5_000)
    await expect.poll(remaining, { interval: 5 }).toBe(600)
    expect(vi.getTimerCount()).toBe(0)
    fault = { error: away, hasHappened: false }
    await expect(second.release()).rejects.toThrow()
    fault = undefined
    await limiter.close()

    expect(await remaining()).toBe(700)
  })

  test('a settlement with an uncertain outcome is not retried', async () => {
    const { limiter, remaining } = await open({ tokensPerMinute: 1_000 })
    const reservation = await limiter.reserve([{ id: 'ann' }], tokens(900))

    fault = { error: new UncertainOutcome('not confirmed'), hasHappened: true }
    await expect(reservation.settle(tokens(600))).rejects.toThrow()
    fault = undefined
    await limiter.renew()

    expect(await remaining()).toBe(400)
  })

  test('many calls of a subject with a locked row do not block other subjects', async () => {
    const { limiter } = await open({ requestsPerMinute: 5 })
    await limiter.reserve([{ id: 'hot' }], tokens(0))
    if (name === 'SQLite') return expectInTurn(limiter)
    const other = await openDatabase(location)
    onTestFinished(() => other.close())
    let letGo = (): void => {}
    const held = new Promise<void>((resolve) => {
      letGo = resolve
    })
    let isHeld = false
    const holding = other.transaction(async ({ query }) => {
      await query('SELECT * FROM modelmount_limits WHERE subject = ? FOR UPDATE', ['hot'])
      isHeld = true
      await held
    })
    await expect.poll(() => isHeld).toBe(true)

    // More calls than the pool has connections.
    const hot = Array.from({ length: 30 }, () => limiter.reserve([{ id: 'hot' }], tokens(0)).catch(() => {}))
    await limiter.reserve([{ id: 'innocent' }], tokens(0))

    letGo()
    await Promise.all([holding, ...hot])
  })

  /**
   * SQLite has one writer at a time. A call of another subject must not wait for all calls of the hot
   * subject.
   */
  async function expectInTurn(limiter: Awaited<ReturnType<typeof open>>['limiter']): Promise<void> {
    let done = 0
    const hot = Array.from({ length: 30 }, () =>
      limiter
        .reserve([{ id: 'hot' }], tokens(0))
        .catch(() => {})
        .then(() => done++),
    )
    await limiter.reserve([{ id: 'innocent' }], tokens(0))
    expect(done).toBeLessThan(10)
    await Promise.all(hot)
  }
})
