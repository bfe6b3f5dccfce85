import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { databases } from '../../../../../test/support/databases.ts'
import { uncached } from '../../engine/events.ts'
import { LlmError } from '../../errors.ts'
import type { Database } from '../../storage/database.ts'
import { openDatabase } from '../../storage/open.ts'
import type { Caller } from '../auth/caller.ts'
import { toUsd } from '../spending-limit.ts'
import type { CallUsage } from './call-usage.ts'
import { type CallOutcome, Ledger, type LedgerCall, type LedgerOptions, openLedger } from './ledger.ts'
import type { SpendingWarning } from './warnings.ts'

/** An input token costs 1,000 nano-dollars, and an output token 2,000. */
const prices = { tiny: { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } }
const evening = Date.parse('2026-11-22T23:59:00Z')
const day = 86_400_000

const payer = (nanoUsd: number, period: 'day' | 'month' | 'lifetime' = 'day'): Caller => ({
  id: 'key_1',
  spendingLimit: { usd: toUsd(nanoUsd), period },
  key: { id: 'key_1', name: 'Reports' },
})
const used = (inputTokens: number, outputTokens: number): CallUsage => ({
  ...uncached,
  inputTokens,
  reusedTokens: 0,
  outputTokens,
  undeliveredTokens: 0,
})
const ended = (inputTokens: number, outputTokens: number): CallOutcome => ({
  usage: used(inputTokens, outputTokens),
  status: 'ended',
  durationMs: 5,
})
const refusalOf = (promise: Promise<unknown>): Promise<LlmError> =>
  promise.then(
    () => expect.fail('The call was not rejected.'),
    (cause: unknown) => LlmError.from(cause),
  )

const inMemory = { name: 'memory', fresh: async () => ':memory:' }

describe.each([inMemory, ...databases()])('in $name', ({ fresh }) => {
  const opened: Database[] = []
  const clock = { at: evening }
  let lastId = 0
  const open = async (options: LedgerOptions = {}, where?: string): Promise<Ledger> => {
    const database = await openDatabase(where ?? (await fresh()))
    opened.push(database)
    return openLedger(database, { prices, now: () => clock.at, ...options })
  }
  const call = (caller: Caller, more: Partial<LedgerCall> = {}): LedgerCall => ({
    id: `call_${++lastId}`,
    caller,
    model: 'tiny',
    dialect: 'openai',
    ...more,
  })

  afterEach(async () => {
    clock.at = evening
    for (const database of opened.splice(0)) await database.close()
  })

  test('writes one row per call, with tokens by kind, cost and outcome', async () => {
    const ledger = await open()
    const funds = await ledger.reserve(call(payer(1_000_000), { id: 'call' }), {
      inputTokens: 100,
      outputTokens: 50,
    })

    await funds.settle({
      usage: { ...used(100, 20), reusedTokens: 40, undeliveredTokens: 7 },
      status: 'aborted',
      durationMs: 12,
    })

    expect(await ledger.calls()).toEqual([
      {
        id: 'call',
        startedAt: new Date(evening),
        caller: 'key_1',
        tenant: 'key_1',
        keyName: 'Reports',
        model: 'tiny',
        dialect: 'openai',
        tokens: { input: 60, cachedInput: 40, cacheWrite: 0, output: 20 },
        undeliveredTokens: 7,
        nanoUsd: 104_000,
        isPriced: true,
        isBatch: false,
        status: 'aborted',
        durationMs: 12,
      },
    ])
  })

  test('rejects a call whose worst case exceeds the limit, and reports when access resumes', async () => {
    const ledger = await open()
    const most = { inputTokens: 100, outputTokens: 50 }
    await (await ledger.reserve(call(payer(399_999)), most)).settle(ended(100, 50))

    const refusal = await refusalOf(ledger.reserve(call(payer(399_999)), most))

    expect(refusal.code).toBe('quota')
    expect(refusal.details).toEqual({
      keyName: 'Reports',
      period: 'day',
      resumesAt: new Date('2026-11-23T00:00:00Z'),
    })
    expect(refusal.message).toContain('2026-11-23T00:00:00Z')
  })

  test('releases credit that was reserved and not used', async () => {
    const ledger = await open()
    const caller = payer(300_000)
    const most = { inputTokens: 100, outputTokens: 100 }
    const first = await ledger.reserve(call(caller), most)

    await expect(ledger.reserve(call(caller), { inputTokens: 1, outputTokens: 1 })).rejects.toThrow('Reports')
    await first.settle(ended(0, 0))
    const second = await ledger.reserve(call(caller), most)
    await second.settle(ended(100, 49))
    await ledger.reserve(call(caller), { inputTokens: 100, outputTokens: 1 })

    await expect(ledger.reserve(call(caller), { inputTokens: 1, outputTokens: 0 })).rejects.toThrow('Reports')
  })

  test('credit reserved by running calls rejects with a retry after 1 s, without a warning', async () => {
    const heard: number[] = []
    const ledger = await open({ warnings: { onWarning: ({ threshold }) => void heard.push(threshold) } })
    const running = await ledger.reserve(call(payer(399_999)), { inputTokens: 100, outputTokens: 50 })
    const next = () => ledger.reserve(call(payer(399_999)), { inputTokens: 100, outputTokens: 50 })

    const refusal = await refusalOf(next())
    await running.settle(ended(0, 0))
    const paid = await next()

    expect([refusal.code, refusal.details]).toEqual(['rate_limit', { retryAfterMs: 1_000 }])
    expect(refusal.message).toContain('Reports')
    expect(heard).toEqual([])
    await paid.settle(ended(100, 50))
    expect((await refusalOf(next())).code).toBe('quota')
    expect(heard).toEqual([1])
  })

  test('a call that has reserved all credit blocks other calls of its caller', async () => {
    const ledger = await open()
    await ledger.reserve(call(payer(100_000)), { inputTokens: 0 })

    expect((await refusalOf(ledger.expectCredit(call(payer(100_000))))).code).toBe('rate_limit')
  })

  test('running calls keep their reservations when the clock jumps', async () => {
    const ledger = await open()
    const caller = payer(100_000, 'lifetime')
    const most = { inputTokens: 0, outputTokens: 50 }
    const running = await ledger.reserve(call(caller), most)

    for (const step of [60_000, 86_400_000, -10 * 86_400_000, 60_000]) {
      clock.at += step
      expect((await refusalOf(ledger.reserve(call(caller), most))).code).toBe('rate_limit')
    }
    await running.settle(ended(0, 50))

    expect((await refusalOf(ledger.reserve(call(caller), most))).code).toBe('quota')
    expect(await ledger.report({ by: 'key' })).toMatchObject([{ nanoUsd: 100_000n }])
  })

  test('restores a lease that another process removed as expired', async () => {
    const where = await fresh()
    if (where === ':memory:') return
    const slept = await open({}, where)
    const other = await open({}, where)
    const most = { inputTokens: 0, outputTokens: 50 }
    await slept.reserve(call(payer(150_000, 'month')), most)
    clock.at += 60_000
    const short = await other.reserve(call(payer(150_000, 'month')), most)
    await short.settle(ended(0, 0))
    await slept.renew()

    expect((await refusalOf(other.reserve(call(payer(150_000, 'month')), most))).code).toBe('rate_limit')
  })

  test('a call that is settled during a renewal stays settled', async () => {
    const database = await openDatabase(await fresh())
    opened.push(database)
    let goOn: () => void = () => {}
    const gate = new Promise<void>((resolve) => {
      goOn = resolve
    })
    const slow: Database = {
      clock: database.clock,
      skipLocked: database.skipLocked,
      query: async (...asked) => {
        await gate
        return database.query(...asked)
      },
      transaction: (...asked) => database.transaction(...asked),
      close: () => database.close(),
    }
    await openLedger(database)
    const ledger = new Ledger(slow, { prices, now: () => clock.at })
    const caller = payer(100_000)
    const most = { inputTokens: 0, outputTokens: 50 }
    const funds = await ledger.reserve(call(caller), most)

    const renewed = ledger.renew()
    await new Promise(setImmediate)
    const settled = funds.settle(ended(0, 0))
    for (let turns = 0; turns < 100; turns++) await new Promise(setImmediate)
    goOn()
    await Promise.all([renewed, settled])

    expect((await ledger.reserve(call(caller), most)).maxOutputTokens).toBe(50)
  })

  test.each(['day', 'month'] as const)(
    'spending while the clock was ahead counts for this %s',
    async (period) => {
      const ledger = await open()
      const caller = payer(100_000, period)
      const spend = async () =>
        (await ledger.reserve(call(caller), { inputTokens: 0, outputTokens: 20 })).settle(ended(0, 20))
      clock.at += 40 * 86_400_000
      await spend()
      clock.at = evening
      await spend()

      expect((await refusalOf(spend())).code).toBe('quota')
      clock.at += 40 * 86_400_000
      await spend()
    },
  )

  test('rejects a model without a price for callers with a limit, and charges nothing for a price of 0', async () => {
    const ledger = await open({ prices: { free: { inputPerMillionUsd: 0, outputPerMillionUsd: 0 } } })
    const most = { inputTokens: 1, outputTokens: 1 }

    const refusal = await refusalOf(ledger.reserve(call(payer(1_000)), most))
    const free = await ledger.reserve(call(payer(0), { model: 'free' }), most)

    expect([refusal.code, refusal.details]).toEqual(['permission', { setup: true }])
    expect(refusal.message).toContain('"tiny"')
    expect(free.maxOutputTokens).toBe(Number.POSITIVE_INFINITY)
  })

  test('reports a cost that cannot be computed once, and releases its reservation', async () => {
    const errors: unknown[] = []
    const ledger = await open({ onError: (error) => errors.push(error) })
    const caller = payer(100_000)
    const most = { inputTokens: 0, outputTokens: 50 }
    await (await ledger.reserve(call(caller), most)).settle(ended(0, 12.5))

    for (let minutes = 0; minutes < 2; minutes++) {
      clock.at += 60_000
      await ledger.renew()
    }

    expect(errors).toHaveLength(1)
    expect((await ledger.reserve(call(caller), most)).maxOutputTokens).toBe(50)
  })

  test('settling after the ledger and its database are closed starts no work', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    try {
      const errors: unknown[] = []
      const ledger = await open({ onError: (error) => errors.push(error) })
      const funds = await ledger.reserve(call(payer(100_000)), { inputTokens: 0, outputTokens: 50 })
      await ledger.close()
      for (const database of opened.splice(0)) await database.close()

      await funds.settle(ended(0, 10))

      expect(errors).toHaveLength(1)
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  test('a call of yesterday that ends today causes no warning for today', async () => {
    const heard: number[] = []
    const ledger = await open({ warnings: { onWarning: ({ threshold }) => void heard.push(threshold) } })
    const caller = payer(100_000)
    const reserve = (outputTokens: number) => ledger.reserve(call(caller), { inputTokens: 0, outputTokens })
    const yesterday = await reserve(10)
    clock.at += 120_000
    await (await reserve(42)).settle(ended(0, 42))

    await yesterday.settle(ended(0, 10))

    expect(heard).toEqual([0.8])
  })

  test('warns once for an exhausted limit, and again for a larger limit', async () => {
    const heard: number[] = []
    const ledger = await open({ warnings: { onWarning: ({ threshold }) => void heard.push(threshold) } })
    const spend = async (outputTokens: number, nanoUsd: number) =>
      (await ledger.reserve(call(payer(nanoUsd)), { inputTokens: 0, outputTokens })).settle(
        ended(0, outputTokens),
      )
    await spend(47, 100_000)
    await expect(spend(4, 100_000)).rejects.toThrow('Reports')
    await spend(3, 100_000)
    expect(heard).toEqual([0.8, 1])

    await spend(50, 200_000)

    expect(heard).toEqual([0.8, 1, 0.8, 1])
  })

  test('without a maximum, the credit bounds the answer', async () => {
    const ledger = await open()

    const funds = await ledger.reserve(call(payer(150_999)), { inputTokens: 100 })

    expect(funds.maxOutputTokens).toBe(25)
    await expect(ledger.reserve(call(payer(150_999)), { inputTokens: 0 })).rejects.toThrow('Reports')
  })

  test('a hundred concurrent calls get what the limit pays for, to the nano-dollar', async () => {
    const ledger = await open()
    const caller = payer(10 * 200_000)
    const tried = await Promise.allSettled(
      Array.from({ length: 100 }, async () => {
        const funds = await ledger.reserve(call(caller), { inputTokens: 100, outputTokens: 50 })
        await funds.settle(ended(100, 50))
      }),
    )

    expect(tried.filter(({ status }) => status === 'fulfilled')).toHaveLength(10)
    expect(await ledger.report({ by: 'key' })).toMatchObject([{ calls: 10, nanoUsd: 2_000_000n }])
  })

  test('a day ends at midnight in UTC, a month at its end, a lifetime never', async () => {
    const ledger = await open()
    const most = { inputTokens: 0, outputTokens: 50 }
    const spend = async (period: 'day' | 'month' | 'lifetime') => {
      const funds = await ledger.reserve(call({ ...payer(100_000, period), id: period }), most)
      await funds.settle(ended(0, 50))
    }
    const all = ['day', 'month', 'lifetime'] as const
    for (const period of all) await spend(period)

    clock.at = Date.parse('2026-11-23T00:00:00Z')
    await spend('day')
    for (const period of all) expect((await refusalOf(spend(period))).details.period).toBe(period)

    clock.at = Date.parse('2026-12-01T00:00:00Z')
    await spend('month')
    const refusal = await refusalOf(spend('lifetime'))
    expect(refusal.code).toBe('quota')
    expect(refusal.details).not.toHaveProperty('resumesAt')
  })

  test('a cost counts for the day of its reservation', async () => {
    const ledger = await open()
    const caller = payer(100_000)
    const funds = await ledger.reserve(call(caller), { inputTokens: 0, outputTokens: 50 })
    clock.at = Date.parse('2026-11-23T00:00:01Z')
    const today = await ledger.reserve(call(caller), { inputTokens: 0, outputTokens: 50 })

    await today.settle(ended(0, 30))
    await funds.settle(ended(0, 50))

    await ledger.reserve(call(caller), { inputTokens: 0, outputTokens: 20 })
    expect(await ledger.report({ by: 'day' })).toMatchObject([
      { group: '2026-11-22', nanoUsd: 100_000n },
      { group: '2026-11-23', nanoUsd: 60_000n },
    ])
  })

  test('leases of a dead process expire after 9 s, leases of a running process do not', async () => {
    const where = await fresh()
    if (where === ':memory:') return
    const dead = await open({}, where)
    const alive = await open({}, where)
    const caller = payer(100_000, 'month')
    const most = { inputTokens: 0, outputTokens: 50 }
    await dead.reserve(call(caller), most)

    clock.at += 8_000
    await dead.renew()
    clock.at += 8_000
    await expect(alive.reserve(call(caller), most)).rejects.toThrow('Reports')
    clock.at += 1_000
    const funds = await alive.reserve(call(caller), most)

    expect(funds.maxOutputTokens).toBe(50)
  })

  test('charges a call only once if it is settled twice, even by two processes', async () => {
    const where = await fresh()
    const ledger = await open({}, where)
    const again = where === ':memory:' ? ledger : await open({}, where)
    const same = call({ id: 'app' }, { id: 'same' })
    const [first, second] = await Promise.all([
      ledger.reserve(same, { inputTokens: 0 }),
      again.reserve(same, { inputTokens: 0 }),
    ])

    await Promise.all([
      first.settle(ended(10, 10)),
      first.settle(ended(10, 10)),
      second.settle(ended(10, 10)),
    ])

    expect(await ledger.report({ by: 'key' })).toMatchObject([{ calls: 1, nanoUsd: 30_000n }])
  })

  test('retries failed writes later, without failing the answer', async () => {
    const database = await openDatabase(await fresh())
    opened.push(database)
    const errors: unknown[] = []
    let isAway = false
    const flaky: Database = {
      ...database,
      clock: database.clock,
      skipLocked: database.skipLocked,
      query: (...asked) => database.query(...asked),
      transaction: (...asked) =>
        isAway ? Promise.reject(new Error('away')) : database.transaction(...asked),
      close: () => database.close(),
    }
    const ledger = await openLedger(flaky, { prices, now: () => clock.at, onError: (e) => errors.push(e) })
    const caller = payer(100_000)
    const funds = await ledger.reserve(call(caller), { inputTokens: 0, outputTokens: 50 })

    isAway = true
    await funds.settle(ended(0, 10))
    isAway = false
    expect(await ledger.calls()).toEqual([])
    await expect(ledger.reserve(call(caller), { inputTokens: 0, outputTokens: 1 })).rejects.toThrow('Reports')
    await ledger.renew()

    expect(errors).toHaveLength(1)
    expect(await ledger.report({ by: 'key' })).toMatchObject([{ calls: 1, nanoUsd: 20_000n }])
    await ledger.reserve(call(caller), { inputTokens: 0, outputTokens: 40 })
  })

  test('a renewal does not write a row that is being written', async () => {
    const database = await openDatabase(await fresh())
    opened.push(database)
    let isSlow = false
    let writes = 0
    let finish = (): void => {}
    const slow: Database = {
      clock: database.clock,
      skipLocked: database.skipLocked,
      query: (...asked) => database.query(...asked),
      transaction: async (...asked) => {
        if (isSlow && ++writes > 1) throw new Error('away')
        if (isSlow)
          await new Promise<void>((resolve) => {
            finish = resolve
          })
        return database.transaction(...asked)
      },
      close: () => database.close(),
    }
    const ledger = await openLedger(slow, { prices, now: () => clock.at })
    const funds = await ledger.reserve(call(payer(100_000)), { inputTokens: 0, outputTokens: 50 })

    isSlow = true
    const settled = funds.settle(ended(0, 10))
    await vi.waitFor(() => expect(writes).toBe(1))
    const renewed = ledger.renew()
    await vi.waitFor(() => database.query('SELECT 1'))
    finish()
    await Promise.all([settled, renewed])
    isSlow = false
    await ledger.renew()

    expect(await database.query('SELECT id FROM modelmount_funds')).toEqual([])
    expect(await ledger.report({ by: 'key' })).toMatchObject([{ calls: 1, nanoUsd: 20_000n }])
  })

  test('retries a charge whose response was lost, and charges once', async () => {
    const database = await openDatabase(await fresh())
    opened.push(database)
    let isLost = false
    const flaky: Database = {
      clock: database.clock,
      skipLocked: database.skipLocked,
      query: (...asked) => database.query(...asked),
      transaction: async (...asked) => {
        const result = await database.transaction(...asked)
        if (isLost) throw new Error('The connection broke.')
        return result
      },
      close: () => database.close(),
    }
    const ledger = await openLedger(flaky, { prices, now: () => clock.at })
    const caller = payer(100_000)
    const funds = await ledger.reserve(call(caller), { inputTokens: 0, outputTokens: 50 })
    isLost = true
    await funds.settle(ended(0, 30))
    await ledger.renew()
    isLost = false
    await ledger.renew()

    expect(await ledger.report({ by: 'key' })).toMatchObject([{ calls: 1, nanoUsd: 60_000n }])
    // The reservation is released.
    expect((await ledger.reserve(call(caller), { inputTokens: 0, outputTokens: 20 })).maxOutputTokens).toBe(
      20,
    )
  })

  test('counts callers without a limit, and marks calls of models without a price', async () => {
    const ledger = await open()

    const funds = await ledger.reserve(call({ id: 'app' }, { model: 'other' }), { inputTokens: 5 })
    await funds.settle(ended(5, 5))

    expect(funds.maxOutputTokens).toBe(Number.POSITIVE_INFINITY)
    expect(await ledger.report({ by: 'model' })).toEqual([
      {
        group: 'other',
        calls: 1,
        unpricedCalls: 1,
        nanoUsd: 0n,
        tokens: { input: 5, cachedInput: 0, cacheWrite: 0, output: 5 },
        undeliveredTokens: 0,
        batch: { calls: 0, nanoUsd: 0n, tokens: { input: 0, cachedInput: 0, cacheWrite: 0, output: 0 } },
      },
    ])
  })

  test('`*` is the price of all other models', async () => {
    const ledger = await open({ prices: { '*': prices.tiny } })

    await (await ledger.reserve(call({ id: 'app' }, { model: 'other' }), { inputTokens: 5 })).settle(
      ended(5, 5),
    )

    expect(await ledger.calls()).toMatchObject([{ nanoUsd: 15_000, isPriced: true }])
  })

  test('reports a range of days by key, model or day', async () => {
    const ledger = await open()
    const one = async (at: string, caller: string, model: string) => {
      clock.at = Date.parse(at)
      const funds = await ledger.reserve(call({ id: caller }, { model }), { inputTokens: 1 })
      await funds.settle({ ...ended(1, 1), durationMs: 0 })
    }
    await one('2026-11-20T10:00:00Z', 'a', 'tiny')
    await one('2026-11-21T10:00:00Z', 'a', 'tiny')
    await one('2026-11-21T23:59:59Z', 'b', 'tiny')
    await one('2026-11-22T00:00:00Z', 'b', 'other')

    const by = async (by: 'key' | 'model' | 'day') =>
      (await ledger.report({ by, from: new Date('2026-11-21T12:00:00Z'), to: new Date('2026-11-22') })).map(
        ({ group, calls, nanoUsd }) => [group, calls, nanoUsd],
      )

    expect(await by('key')).toEqual([
      ['a', 1, 3_000n],
      ['b', 2, 3_000n],
    ])
    expect(await by('model')).toEqual([
      ['other', 1, 0n],
      ['tiny', 2, 6_000n],
    ])
    expect(await by('day')).toEqual([
      ['2026-11-21', 2, 6_000n],
      ['2026-11-22', 1, 0n],
    ])
  })

  test('warns once per threshold: when most is spent, and when the rest is too small', async () => {
    const heard: number[] = []
    const published: SpendingWarning[] = []
    const listen = (message: unknown): void => void published.push(message as SpendingWarning)
    subscribe('modelmount:spending', listen)
    try {
      const ledger = await open({ warnings: { onWarning: ({ threshold }) => void heard.push(threshold) } })
      const caller = payer(100_000)
      const spend = async (outputTokens: number) =>
        (await ledger.reserve(call(caller), { inputTokens: 0, outputTokens })).settle(ended(0, outputTokens))
      await spend(39)
      expect(heard).toEqual([])
      await spend(1)
      expect(heard).toEqual([0.8])
      await spend(5)
      await expect(spend(6)).rejects.toThrow('Reports')
      await expect(spend(7)).rejects.toThrow('Reports')
      expect(heard).toEqual([0.8, 1])

      clock.at += 86_400_000
      await spend(50)
      expect(heard).toEqual([0.8, 1, 0.8, 1])
      await expect(spend(1)).rejects.toThrow('Reports')
      expect(heard).toHaveLength(4)
      expect(published[0]).toEqual({
        caller: 'key_1',
        keyName: 'Reports',
        threshold: 0.8,
        spentNanoUsd: 80_000,
        limitNanoUsd: 100_000,
        period: 'day',
      })
      expect(published).toHaveLength(4)
    } finally {
      unsubscribe('modelmount:spending', listen)
    }
  })

  test('stores names that a database string cannot hold', async () => {
    const ledger = await open()

    const id = `nul \0 ${'x'.repeat(10_000)}`
    const funds = await ledger.reserve(call({ id, key: { id, name: 'a\0b \ud800' } }, { model: 'a\0b' }), {
      inputTokens: 1,
    })
    await funds.settle(ended(1, 1))

    expect(await ledger.report({ by: 'key' })).toMatchObject([{ calls: 1, name: 'a\ufffdb \ufffd' }])
  })

  const spendAt = async (ledger: Ledger, at: number, name = 'Reports') => {
    clock.at = at
    const caller = { id: 'key_1', key: { id: 'key_1', name } }
    await (await ledger.reserve(call(caller), { inputTokens: 1 })).settle(ended(1, 1))
  }

  test('deletes old rows of calls and keeps their sums', async () => {
    const ledger = await open({ retentionMs: 3 * day })
    await spendAt(ledger, evening)
    await spendAt(ledger, evening + 6)
    await spendAt(ledger, evening + 2 * day)
    const before = await ledger.calls()
    await spendAt(ledger, evening + 3 * day + 1)

    expect(before).toHaveLength(3)
    await expect
      .poll(async () => (await ledger.calls()).map(({ startedAt }) => startedAt.getTime()))
      .toEqual([evening + 3 * day + 1 - 5, evening + 2 * day - 5, evening + 6 - 5])
    expect(await ledger.report({ by: 'key' })).toMatchObject([{ calls: 4, nanoUsd: 12_000n }])
    await ledger.close()
  })

  test('deletes many old rows, also concurrently, and none with retention forever', async () => {
    const first = await open()
    const database = opened[0] as Database
    await database.query(
      `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1700)
       INSERT INTO modelmount_calls (id, at, caller, model, input_tokens, cached_input_tokens,
         cache_write_tokens, output_tokens, nano_usd, priced, status, duration_ms)
       SELECT 'old' || n, n, 'key_1', 'tiny', 1, 0, 0, 1, 3000, 1, 'ended', 5 FROM numbers`,
    )
    const count = async () =>
      (await database.query<{ n: number }>('SELECT count(*) AS n FROM modelmount_calls'))[0]?.n
    await spendAt(first, evening)
    await first.close()
    expect(await count()).toBe(1_701)

    const pruning = [1, 2, 3].map(
      () => new Ledger(database, { prices, now: () => clock.at, retentionMs: day }),
    )
    await Promise.all(pruning.map((ledger) => spendAt(ledger, evening)))
    await expect.poll(count).toBe(4)
    for (const ledger of pruning) await ledger.close()
  })

  test('reports the last name of a key, or its current name if it is known', async () => {
    const where = await fresh()
    const ledger = await open({}, where)
    await spendAt(ledger, evening, 'Zebra')
    await spendAt(ledger, evening + day, 'Ant')

    expect(await ledger.report({ by: 'key' })).toMatchObject([{ group: 'key_1', name: 'Ant', calls: 2 }])
    const knowing = new Ledger(opened[0] as Database, { namesOf: async () => new Map([['key_1', 'Bee']]) })
    expect(await knowing.report({ by: 'key' })).toMatchObject([{ group: 'key_1', name: 'Bee', calls: 2 }])
    expect((await knowing.calls()).map(({ keyName }) => keyName)).toEqual(['Ant', 'Zebra'])
  })
})
