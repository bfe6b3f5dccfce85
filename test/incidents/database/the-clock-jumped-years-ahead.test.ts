/** The clock of a machine was years ahead for minutes, such as after a start with an empty battery. */
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { openKeys } from '../../../packages/core/src/accounts/keys/keys.ts'
import { openDeletionWatcher } from '../../../packages/core/src/accounts/tenants/deletion-watcher.ts'
import { Tenants } from '../../../packages/core/src/accounts/tenants/tenants.ts'
import { UsageData } from '../../../packages/core/src/accounts/tenants/usage-data.ts'
import { Ledger, openLedger } from '../../../packages/core/src/accounts/usage/ledger.ts'
import { observeClock } from '../../../packages/core/src/accounts/usage/retention-clock.ts'
import { BatchApis } from '../../../packages/core/src/batches/batch-apis.ts'
import { Lifecycle } from '../../../packages/core/src/batches/running/lifecycle.ts'
import { BatchStore } from '../../../packages/core/src/batches/store/batch-store.ts'
import { createLlm } from '../../../packages/core/src/create-llm.ts'
import { batchApis } from '../../../packages/core/src/dialects/batch-apis.ts'
import { uncached } from '../../../packages/core/src/engine/events.ts'
import type { Database } from '../../../packages/core/src/storage/database.ts'
import { openDatabase } from '../../../packages/core/src/storage/open.ts'
import { scriptedEngine } from '../../../packages/core/src/testing/scripted-engine.ts'
import { databases } from '../../support/databases.ts'

const dayMs = 86_400_000
const tenYears = 3_650 * dayMs

describe.each(databases())('in $name', ({ fresh }) => {
  let location: string
  let database: Database

  beforeEach(async () => {
    location = await fresh()
    database = await openDatabase(location)
    return () => database.close()
  })

  /** The same database, with a clock that is ahead. */
  const ahead = (ms: number): Database => ({
    clock: `(${database.clock} + ${ms})`,
    skipLocked: database.skipLocked,
    query: (...asked) => database.query(...asked),
    transaction: (...asked) => database.transaction(...asked),
    close: async () => {},
  })

  test('no row of a call is deleted, and no sum of a day is merged', async () => {
    const start = Date.parse('2026-11-22T10:00:00Z')
    const clock = { at: start }
    const errors: unknown[] = []
    const options = {
      now: () => clock.at,
      retentionMs: 90 * dayMs,
      onError: (cause: unknown) => errors.push(cause),
    }
    const usage = { ...uncached, inputTokens: 1, reusedTokens: 0, outputTokens: 1, undeliveredTokens: 0 }
    let ledger = await openLedger(database, options)
    let calls = 0
    const call = async () => {
      const reservation = ledger.openPostpaid({ id: `call ${++calls}`, caller: { id: 'ann' }, model: 'one' })
      await reservation.settle({ usage, status: 'ended', durationMs: 0 })
      // Waits for the retention that the call has started. The next process continues.
      await ledger.close()
      ledger = new Ledger(database, options)
    }

    await call()
    clock.at += tenYears
    await call()
    clock.at += dayMs
    await call()
    clock.at = start + dayMs
    await call()
    await ledger.close()

    expect((await ledger.calls()).map(({ id }) => id).sort()).toEqual([
      'call 1',
      'call 2',
      'call 3',
      'call 4',
    ])
    expect((await ledger.report({ by: 'day' })).map(({ group }) => group)).toEqual([
      '2026-11-22',
      '2026-11-23',
      '2036-11-19',
      '2036-11-20',
    ])
    expect(errors).toEqual([])
  })

  test('no sum is merged if already the first observation is years ahead', async () => {
    const start = Date.parse('2026-11-22T10:00:00Z')
    await (await openLedger(database, {})).close()
    await database.query(
      `INSERT INTO modelmount_usage_days (day, caller, model, calls, input_tokens, cached_input_tokens,
         cache_write_tokens, output_tokens, nano_usd, unpriced_calls)
       VALUES ('2026-11-22', 'ann', 'one', 1, 1, 0, 0, 1, 1, 0)`,
    )

    const horizonOf = await observeClock(database, String(start + tenYears))

    expect(horizonOf(366 * dayMs)).toBeLessThan(start - 365 * dayMs)
  })

  test('the spending of the current day and month counts again when the clock is right', async () => {
    const start = Date.parse('2026-11-22T10:00:00Z')
    const clock = { at: start }
    const prices = { one: { inputPerMillionUsd: 1, outputPerMillionUsd: 1 } }
    const ledger = await openLedger(database, { prices, now: () => clock.at })
    const spend = async (id: string, period: 'day' | 'month', outputTokens: number) => {
      const caller = { id: period, spendingLimit: { usd: 0.0001, period } }
      const reserved = await ledger.reserve({ id, caller, model: 'one' }, { inputTokens: 0, outputTokens })
      const usage = { ...uncached, inputTokens: 0, reusedTokens: 0, outputTokens, undeliveredTokens: 0 }
      await reserved.settle({ usage, status: 'ended', durationMs: 0 })
    }
    for (const period of ['day', 'month'] as const) {
      clock.at = start
      await spend(`${period} 1`, period, 90)
      clock.at = start + tenYears
      await spend(`${period} 2`, period, 5)
      clock.at = start + 60_000

      await spend(`${period} 3`, period, 5)
      await expect(spend(`${period} 4`, period, 1)).rejects.toMatchObject({ code: 'quota' })
    }
    await ledger.close()
  })

  test('the credit of a killed process is free within a minute of the right time', async () => {
    const prices = { one: { inputPerMillionUsd: 1, outputPerMillionUsd: 1 } }
    const caller = { id: 'ann', spendingLimit: { usd: 0.0001, period: 'lifetime' } } as const
    const ledger = await openLedger(database, { prices })
    await database.query(
      `INSERT INTO modelmount_funds (id, caller, at, nano_usd, expires_at)
       VALUES ('killed', 'ann', ${database.clock}, 1, ${database.clock} + ${tenYears})`,
    )

    await ledger.reserve({ id: 'next', caller, model: 'one' }, { inputTokens: 0, outputTokens: 1 })

    const [killed] = await database.query<{ rest: number }>(
      `SELECT expires_at - ${database.clock} AS rest FROM modelmount_funds WHERE id = 'killed'`,
    )
    expect(killed?.rest).toBeLessThanOrEqual(60_000)
    await ledger.close()
  })

  test('the previous secret of a key is valid again when the clock is right', async () => {
    const [right, wrong] = [await openKeys(database), await openKeys(ahead(tenYears))]
    onTestFinished(async () => void (await Promise.all([right.close(), wrong.close()])))
    const { key, secret } = await right.create({ name: 'any' })
    await right.rotate(key.id)

    await wrong.rotate(key.id)

    expect((await right.authenticate(secret)).id).toBe(key.id)
    await expect(wrong.authenticate(secret)).rejects.toMatchObject({ code: 'authentication' })
  })

  test('a tenant that was deleted meanwhile keeps the calls that it has made since', async () => {
    const errors: unknown[] = []
    const onError = (cause: unknown) => errors.push(cause)
    await (await openKeys(database)).close()
    const ledger = await openLedger(database, {})
    const wrong = await openDeletionWatcher(ahead(tenYears), onError)
    const right = await openDeletionWatcher(database, onError)
    onTestFinished(async () => void (await Promise.all([wrong.close(), right.close(), ledger.close()])))
    const parts = {
      stores: [new UsageData(database)],
      revokeKeys: async () => 0,
      endCalls: async () => 0,
      deletePromptStates: async () => 0,
    }
    await new Tenants(parts, wrong).delete('ann')
    new Tenants(parts, right)
    const usage = { ...uncached, inputTokens: 1, reusedTokens: 0, outputTokens: 1, undeliveredTokens: 0 }
    await ledger
      .openPostpaid({ id: 'later', caller: { id: 'ann' }, model: 'one' })
      .settle({ usage, status: 'ended', durationMs: 0 })

    await right.look()
    await right.look()

    expect((await ledger.calls()).map(({ id }) => id)).toEqual(['later'])
    expect(errors).toEqual([])
  })

  test('no batch expires', async () => {
    const llm = await createLlm({
      ...{ database: location, engine: scriptedEngine('one'), models: [] },
      batches: { run: false },
    })
    onTestFinished(() => llm.close())
    const params = { model: 'tiny', max_tokens: 5, messages: [{ role: 'user', content: 'Hello' }] }
    const { id } = await llm.batches.create([{ custom_id: 'a', params }])
    const wrong = { database: ahead(tenYears), clock: () => ahead(tenYears).clock }
    const apis = new BatchApis(async () => batchApis)
    const lifecycle = new Lifecycle(wrong, new BatchStore({ ...wrong, onEvent: () => {} }), apis, {
      retentionMs: dayMs,
      onError: (cause) => {
        throw cause
      },
    })

    await lifecycle.runOften()
    await lifecycle.runSeldom()

    expect(await llm.batches.get(id)).toMatchObject({ status: 'in_progress', counts: { processing: 1 } })
  })

  test('the credit that a running call has reserved stays reserved', async () => {
    const prices = { one: { inputPerMillionUsd: 1, outputPerMillionUsd: 1 } }
    const caller = { id: 'ann', spendingLimit: { usd: 0.0001, period: 'lifetime' } } as const
    const running = await openLedger(database, { prices })
    const other = await openLedger(ahead(tenYears), { prices })
    const worstCase = { inputTokens: 0, outputTokens: 60 }
    const reserved = await running.reserve({ id: 'running', caller, model: 'one' }, worstCase)

    await (
      await other.reserve({ id: 'beside', caller, model: 'one' }, { inputTokens: 0, outputTokens: 10 })
    ).settle({
      usage: { ...uncached, inputTokens: 0, reusedTokens: 0, outputTokens: 0, undeliveredTokens: 0 },
      status: 'ended',
      durationMs: 0,
    })
    await running.renew()

    await expect(running.reserve({ id: 'second', caller, model: 'one' }, worstCase)).rejects.toMatchObject({
      code: 'rate_limit',
    })
    await reserved.settle({
      usage: { ...uncached, inputTokens: 0, reusedTokens: 0, outputTokens: 60, undeliveredTokens: 0 },
      status: 'ended',
      durationMs: 0,
    })
    await Promise.all([running.close(), other.close()])
  })
})
