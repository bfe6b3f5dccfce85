import { beforeEach, describe, expect, test } from 'vitest'
import { databases } from '../../../../../test/support/databases.ts'
import type { Database } from '../../storage/database.ts'
import { openDatabase } from '../../storage/open.ts'
import { writeCall } from './call-rows.ts'
import { type Ledger, openLedger } from './ledger.ts'
import type { UsageQuery } from './report.ts'

describe.each(databases())('in $name', ({ fresh }) => {
  let database: Database
  let ledger: Ledger

  beforeEach(async () => {
    database = await openDatabase(await fresh())
    ledger = await openLedger(database)
    return async () => {
      await ledger.close()
      await database.close()
    }
  })

  let lastId = 0
  const write = (caller: string, day: string, nanoUsd: number, model = 'tiny', isBatch = false) =>
    database.transaction((queries) =>
      writeCall(queries, {
        ...{
          id: `call_${++lastId}`,
          at: Date.parse(`${day}T10:00:00Z`),
          caller,
          tenant: `team of ${caller}`,
        },
        ...{ keyName: `Key ${caller}`, model, dialect: null, undeliveredTokens: 0, nanoUsd, isPriced: true },
        tokens: { input: 1, cachedInput: 2, cacheWrite: 3, output: 4 },
        ...{ isBatch, status: 'ended', durationMs: 5 },
      }),
    )
  const costs = async (query: UsageQuery) =>
    (await ledger.report(query)).map(({ group, calls, nanoUsd }) => [group, calls, Number(nanoUsd)])

  test('the most expensive rows of the days come first, with all sums, and equal ones by group', async () => {
    for (const day of ['2026-11-01', '2026-11-02']) {
      await write('ann', day, 10)
      await write('bob', day, 25, 'large')
      await write('cat', day, 10)
    }
    await write('ann', '2026-10-31', 1_000)
    const days = { from: new Date('2026-11-01'), to: new Date('2026-11-02'), order: 'cost' } as const

    expect(await costs({ by: 'key', ...days })).toEqual([
      ['bob', 2, 50],
      ['ann', 2, 20],
      ['cat', 2, 20],
    ])
    expect(await costs({ by: 'key', ...days, limit: 2 })).toEqual([
      ['bob', 2, 50],
      ['ann', 2, 20],
    ])
    expect(await costs({ by: 'tenant', ...days, limit: 1 })).toEqual([['team of bob', 2, 50]])
    expect(await costs({ by: 'model', ...days, limit: 1 })).toEqual([['large', 2, 50]])
    expect(await costs({ by: 'key', ...days, model: 'tiny', limit: 1 })).toEqual([['ann', 2, 20]])
    expect(await costs({ by: 'day', order: 'cost' })).toEqual([
      ['2026-10-31', 1, 1_000],
      ['2026-11-01', 3, 45],
      ['2026-11-02', 3, 45],
    ])
    const [row] = await ledger.report({ by: 'key', ...days, caller: 'cat' })
    expect(row).toMatchObject({
      name: 'Key cat',
      tokens: { input: 2, cachedInput: 4, cacheWrite: 6, output: 8 },
      batch: { calls: 0, nanoUsd: 0n },
    })
  })

  test('each group has the part of its batches, also on the next page', async () => {
    await write('ann', '2026-11-01', 10)
    await write('ann', '2026-11-01', 5, 'tiny', true)
    await write('ann', '2026-11-02', 5, 'large', true)
    await write('bob', '2026-11-02', 20)
    const parts = async (query: UsageQuery) =>
      (await ledger.report(query)).map(({ group, calls, batch }) => [
        group,
        calls,
        batch.calls,
        Number(batch.nanoUsd),
        batch.tokens.output,
      ])

    expect(await parts({ by: 'key' })).toEqual([
      ['ann', 3, 2, 10, 8],
      ['bob', 1, 0, 0, 0],
    ])
    expect(await parts({ by: 'tenant', limit: 1 })).toEqual([['team of ann', 3, 2, 10, 8]])
    expect(await parts({ by: 'model', after: 'large' })).toEqual([['tiny', 3, 1, 5, 4]])
    expect(await parts({ by: 'day', model: 'large' })).toEqual([['2026-11-02', 1, 1, 5, 4]])
    expect(await parts({ by: 'day', to: new Date('2026-11-01') })).toEqual([['2026-11-01', 2, 1, 5, 4]])
  })

  test('a report in the order of cost has no next page', async () => {
    await expect(ledger.report({ by: 'key', order: 'cost', after: 'ann' })).rejects.toMatchObject({
      code: 'invalid_request',
      details: { param: 'after' },
    })
  })
})

const values = ['constructor', 'toString', '__proto__', 'caller', undefined]

test.each(values)('rejects a report by anything but key, tenant, model or day: %s', async (by) => {
  await expect(reportOf({ by: by as 'key' })).rejects.toThrow(
    "Expected `by` to be 'key', 'tenant', 'model' or 'day'",
  )
})

test('rejects a caller that is no id, such as the caller itself', async () => {
  const caller = { id: 'ada' } as unknown as string

  await expect(reportOf({ by: 'key', caller })).rejects.toThrow(
    new TypeError('Expected `caller` to be the id of a caller, got object'),
  )
})

test.each(values.filter(Boolean))('rejects an order that is neither group nor cost: %s', async (order) => {
  await expect(reportOf({ by: 'key', order: order as 'cost' })).rejects.toThrow(
    "Expected `order` to be 'group' or 'cost'",
  )
})

async function reportOf(query: UsageQuery): Promise<unknown> {
  const database = await openDatabase(':memory:')
  const ledger = await openLedger(database)
  return ledger.report(query).finally(() => database.close())
}
