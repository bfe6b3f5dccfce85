import { beforeEach, describe, expect, test } from 'vitest'
import { databases } from '../../../../../test/support/databases.ts'
import type { Database } from '../../storage/database.ts'
import { openDatabase } from '../../storage/open.ts'
import { type NewCall, writeCall } from './call-rows.ts'
import { type Ledger, openLedger } from './ledger.ts'
import { mergeIntoMonths } from './month-sums.ts'

const tokens = { input: 1, cachedInput: 2, cacheWrite: 3, output: 4 }

describe.each(databases())('in $name', ({ fresh }) => {
  let database: Database
  let ledger: Ledger
  let lastId = 0

  beforeEach(async () => {
    database = await openDatabase(await fresh())
    ledger = await openLedger(database)
    return async () => {
      await ledger.close()
      await database.close()
    }
  })

  const write = (day: string, more: Partial<NewCall> = {}, name = 'Reports') =>
    database.transaction((queries) =>
      writeCall(queries, {
        id: `call_${++lastId}`,
        at: Date.parse(`${day}T10:00:00Z`),
        caller: 'key_1',
        tenant: name,
        keyName: name,
        model: 'tiny',
        dialect: null,
        tokens,
        undeliveredTokens: 5,
        nanoUsd: 1_000,
        isPriced: true,
        status: 'ended',
        durationMs: 5,
        ...more,
      }),
    )
  const merge = (before: string) => mergeIntoMonths(database, Date.parse(before), () => false)
  const days = async () => (await ledger.report({ by: 'day' })).map(({ group, calls }) => [group, calls])

  test('whole months before the time become one sum, and later days stay', async () => {
    for (const day of ['2025-09-01', '2025-10-01', '2025-10-31', '2025-11-01', '2026-02-03']) await write(day)

    await merge('2025-11-22')

    expect(await days()).toEqual([
      ['2025-09', 1],
      ['2025-10', 2],
      ['2025-11-01', 1],
      ['2026-02-03', 1],
    ])
  })

  test('no sum changes, and the name and the tenant of the last day remain', async () => {
    await write('2025-10-01', { nanoUsd: Number.MAX_SAFE_INTEGER }, 'Zebra')
    await write('2025-10-02', { nanoUsd: Number.MAX_SAFE_INTEGER, isPriced: false }, 'Yak')
    await write('2025-10-03', { model: 'other' }, 'Xerus')
    await write('2025-11-03', {}, 'Ant')
    const before = await ledger.report({ by: 'model' })

    await merge('2026-11-22')

    expect(await ledger.report({ by: 'model' })).toEqual(before)
    expect(before).toMatchObject([
      { group: 'other' },
      {
        calls: 3,
        nanoUsd: 2n * BigInt(Number.MAX_SAFE_INTEGER) + 1_000n,
        unpricedCalls: 1,
        undeliveredTokens: 15,
      },
    ])
    expect(await ledger.report({ by: 'key' })).toMatchObject([{ group: 'key_1', name: 'Ant', calls: 4 }])
    expect((await ledger.report({ by: 'tenant' })).map(({ group, calls }) => [group, calls])).toEqual([
      ['Ant', 1],
      ['Xerus', 1],
      ['Yak', 2],
    ])
  })

  test('merging again adds a late call to the sum of its month', async () => {
    await write('2025-10-01')
    await merge('2026-01-01')
    await write('2025-10-05')
    await merge('2026-01-01')
    await merge('2026-01-01')

    expect(await days()).toEqual([['2025-10', 2]])
  })

  test('a report includes each month that its range touches', async () => {
    for (const day of ['2025-09-10', '2025-10-10', '2025-11-10', '2026-01-10']) await write(day)
    await merge('2026-01-01')
    const between = async (from: string, to: string) =>
      (await ledger.report({ by: 'day', from: new Date(from), to: new Date(to) })).map(({ group }) => group)

    expect(await between('2025-10-20', '2025-11-05')).toEqual(['2025-10', '2025-11'])
    expect(await between('2025-11-01', '2026-01-09')).toEqual(['2025-11'])
    expect(await between('2025-12-01', '2026-01-10')).toEqual(['2026-01-10'])
  })

  test('many rows are merged in batches, also by several processes', async () => {
    const callers = Array.from({ length: 700 }, (_, index) => ({ id: `caller ${index}` }))
    await database.transaction(async ({ query }) => {
      for (const { id } of callers)
        await query(
          `INSERT INTO modelmount_usage_days (day, caller, model, calls, input_tokens, cached_input_tokens,
             cache_write_tokens, output_tokens, nano_usd, unpriced_calls)
           VALUES ('2025-10-01', ?, 'tiny', 1, 1, 1, 1, 1, 1, 1), ('2025-10-02', ?, 'tiny', 1, 1, 1, 1, 1, 1, 1)`,
          [id, id],
        )
    })

    await Promise.all([1, 2, 3].map(() => merge('2026-01-01')))
    await merge('2026-01-01')

    expect(await days()).toEqual([['2025-10', 1_400]])
    const [row] = await database.query('SELECT count(*) AS n FROM modelmount_usage_days')
    expect(row).toEqual({ n: 700 })
  })
})
