/** Calls whose process is killed are charged from their notes, once, and hold their reservation for 9 s at most. */
import { afterEach, describe, expect, test } from 'vitest'
import { databases } from '../../../../../test/support/databases.ts'
import { uncached } from '../../engine/events.ts'
import type { LlmError } from '../../errors.ts'
import type { Database } from '../../storage/database.ts'
import { openDatabase } from '../../storage/open.ts'
import type { Caller } from '../auth/caller.ts'
import type { CallUsage } from './call-usage.ts'
import { type Ledger, type LedgerCall, openLedger } from './ledger.ts'
import type { SpendingWarning } from './warnings.ts'

const prices = { tiny: { inputPerMillionUsd: 1, outputPerMillionUsd: 2 } }
const leaseMs = 9_000
const ann: Caller = { id: 'ann', tenant: 'team', key: { id: 'ann', name: 'Reports' } }
const payer: Caller = { ...ann, spendingLimit: { usd: 0.0002, period: 'lifetime' } }

const used = (outputTokens: number): CallUsage => ({
  ...uncached,
  inputTokens: 10,
  reusedTokens: 0,
  outputTokens,
  undeliveredTokens: 3,
})
const costOf = (outputTokens: number): number => 10 * 1_000 + outputTokens * 2_000

describe.each(databases())('in $name', ({ fresh }) => {
  const clock = { at: 0 }
  const opened: (() => Promise<void>)[] = []
  const warnings: object[] = []
  const errors: unknown[] = []
  let database: Database
  let where: string

  const open = async (): Promise<Ledger> => {
    where ??= await fresh()
    database = await openDatabase(where)
    const own = database
    const onWarning = ({ caller, keyName, threshold }: SpendingWarning) =>
      void warnings.push({ caller, keyName, threshold })
    const ledger = await openLedger(own, {
      prices,
      now: () => clock.at,
      warnings: { onWarning },
      onError: (cause) => errors.push(cause),
    })
    opened.push(async () => {
      await ledger.close()
      await own.close()
    })
    return ledger
  }
  /** Another ledger, which has charged the killed calls. */
  const restart = async (): Promise<Ledger> => {
    const ledger = await open()
    await ledger.chargeKilledCalls()
    return ledger
  }
  /** A ledger whose process is killed: it renews nothing. */
  const openKilled = async (): Promise<Ledger> => {
    clock.at = Date.parse('2026-11-22T12:00:00Z')
    where = await fresh()
    return open()
  }
  const call = (caller: Caller, id = 'call'): LedgerCall => ({ id, caller, model: 'tiny', dialect: 'openai' })
  const stored = (): Promise<readonly { id: string }[]> =>
    database.query<{ id: string }>('SELECT id FROM modelmount_funds')
  const spent = async (): Promise<number | undefined> => {
    const [row] = await database.query<{ spent: number }>(
      "SELECT lifetime_spent AS spent FROM modelmount_spending WHERE caller = 'ann'",
    )
    return row?.spent
  }

  afterEach(async () => {
    for (const close of opened.splice(0)) await close()
    warnings.length = 0
    errors.length = 0
  })

  test('a restarted process charges the last note, once, as a row of the status `killed`', async () => {
    const killed = await openKilled()
    const running = killed.openPostpaid(call(ann))
    running.onTaken(used(1))
    await running.onTaken(used(65))
    running.onTaken(used(96))

    clock.at += leaseMs
    const [restarted] = await Promise.all([restart(), restart()])

    expect(await restarted.calls()).toMatchObject([
      {
        id: 'call',
        ...{ caller: 'ann', tenant: 'team', keyName: 'Reports', model: 'tiny', dialect: 'openai' },
        ...{ status: 'killed', tokens: { input: 10, output: 65 }, undeliveredTokens: 3, nanoUsd: costOf(65) },
      },
    ])
    expect(await restarted.report({ by: 'key' })).toMatchObject([{ calls: 1, nanoUsd: BigInt(costOf(65)) }])
    expect(await spent()).toBe(costOf(65))
    expect(await stored()).toEqual([])
  })

  test('an item of a batch whose process is killed before its result is stored costs nothing', async () => {
    const killed = await openKilled()
    const item = { ...call(payer), isBatch: true }
    const reservation = await killed.reserve(item, { inputTokens: 10, outputTokens: 20 })
    reservation.defer({ usage: used(20), status: 'ended', durationMs: 5 })
    // The timer renews the leases while the result is rendered and stored.
    await killed.renew()

    clock.at += leaseMs
    const restarted = await restart()

    expect(await restarted.calls()).toEqual([])
    expect(await spent()).toBe(0)
    expect(await stored()).toEqual([])
  })

  test('the reader waits for a note only when it is more than 64 tokens behind', async () => {
    const ledger = await openKilled()
    const running = ledger.openPostpaid(call(ann))

    expect(running.onTaken(used(31))).toBeUndefined()
    expect(await stored()).toEqual([])
    const waits = Array.from({ length: 64 }, (_, index) => running.onTaken(used(32 + index)))
    expect(waits.findIndex((wait) => wait !== undefined)).toBe(65 - 32)
    await waits.at(-1)
    expect(running.onTaken(used(96))).toBeUndefined()

    const [row] = await database.query<{ note: string }>('SELECT note FROM modelmount_funds')
    expect(JSON.parse(row?.note ?? '')).toMatchObject({ tokens: { output: 95 } })
  })

  test('a renewal notes short answers, too', async () => {
    const killed = await openKilled()
    killed.openPostpaid(call(ann)).onTaken(used(5))
    await killed.renew()

    clock.at += leaseMs
    expect(await (await restart()).calls()).toMatchObject([{ status: 'killed', tokens: { output: 5 } }])
  })

  test('a call that has handed out nothing is not charged, and its reservation ends', async () => {
    const killed = await openKilled()
    await killed.reserve(call(payer), { inputTokens: 10, outputTokens: 90 })

    clock.at += leaseMs
    const restarted = await restart()

    expect(await restarted.calls()).toEqual([])
    expect(await stored()).toEqual([])
  })

  test('a refusal says when the reservation of a killed call ends, and its note counts as spent then', async () => {
    const killed = await openKilled()
    const running = await killed.reserve(call(payer), { inputTokens: 10, outputTokens: 90 })
    await running.onTaken(used(70))
    const other = await restart()
    const most = { inputTokens: 0, outputTokens: 15 }
    const refuse = (id: string): Promise<LlmError> =>
      other.reserve(call(payer, id), most).then(
        () => expect.fail('The call was not rejected.'),
        (refusal: LlmError) => refusal,
      )

    expect((await refuse('a')).details.retryAfterMs).toBe(1_000)
    clock.at += 5_000
    const { code, details } = await refuse('b')
    expect(code).toBe('rate_limit')
    clock.at += details.retryAfterMs ?? 0
    const next = await other.reserve(call(payer, 'next'), most)

    expect(next.maxOutputTokens).toBe(15)
    expect(await spent()).toBe(costOf(70))
    // 200,000 nano-dollars, minus 150,000 of the note, minus 30,000 of the reservation.
    expect((await refuse('c')).code).toBe('rate_limit')
  })

  test('a process that was only stopped replaces the charge of its note when it settles', async () => {
    const stopped = await openKilled()
    const running = await stopped.reserve(call(payer), { inputTokens: 10, outputTokens: 90 })
    await running.onTaken(used(70))
    clock.at += leaseMs
    const other = await restart()
    expect(await spent()).toBe(costOf(70))

    await running.settle({ usage: used(80), status: 'ended', durationMs: 5 })
    await running.settle({ usage: used(80), status: 'ended', durationMs: 5 })

    expect(await other.calls()).toMatchObject([{ status: 'ended', nanoUsd: costOf(80) }])
    expect(await other.report({ by: 'key' })).toMatchObject([
      { calls: 1, tokens: { input: 10, output: 80 }, nanoUsd: BigInt(costOf(80)) },
    ])
    expect(await spent()).toBe(costOf(80))
    expect(await stored()).toEqual([])
  })

  test('a note that is killed twice is charged once, with its last tokens', async () => {
    const stopped = await openKilled()
    const running = stopped.openPostpaid(call(ann))
    await running.onTaken(used(70))
    clock.at += leaseMs
    const other = await restart()
    await running.onTaken(used(140))
    clock.at += leaseMs
    await other.chargeKilledCalls()

    expect(await spent()).toBe(costOf(140))
    expect(await other.calls()).toMatchObject([{ status: 'killed', tokens: { output: 140 } }])
  })

  test('the charge of a note sends the warnings of the spending limit, once', async () => {
    const stopped = await openKilled()
    const running = await stopped.reserve(call(payer), { inputTokens: 10, outputTokens: 90 })
    await running.onTaken(used(80))
    clock.at += leaseMs
    await restart()
    await running.settle({ usage: used(95), status: 'ended', durationMs: 5 })

    expect(warnings).toEqual([0.8, 1].map((threshold) => ({ caller: 'ann', keyName: 'Reports', threshold })))
  })

  test('a call that ends as killed while its caller makes the next one sends its warnings, too', async () => {
    const killed = await openKilled()
    const other = await restart()
    const running = await killed.reserve(call(payer), { inputTokens: 10, outputTokens: 90 })
    await running.onTaken(used(80))
    clock.at += leaseMs
    await other.reserve(call(payer, 'next'), { inputTokens: 0, outputTokens: 1 })

    expect(warnings).toEqual([{ caller: 'ann', keyName: 'Reports', threshold: 0.8 }])
  })

  test('a process that settles after the clock was set back a day pays its note only once', async () => {
    const stopped = await openKilled()
    const running = stopped.openPostpaid(call(ann))
    await running.onTaken(used(70))
    clock.at += leaseMs
    await restart()
    clock.at -= 86_400_000

    await running.settle({ usage: used(80), status: 'ended', durationMs: 5 })

    const [row] = await database.query(
      'SELECT day, day_spent, month_spent, lifetime_spent FROM modelmount_spending',
    )
    const nanoUsd = costOf(80)
    expect(row).toEqual({
      day: '2026-11-21',
      day_spent: nanoUsd,
      month_spent: nanoUsd,
      lifetime_spent: nanoUsd,
    })
  })

  test('after the clock was set back a day, a killed call is charged 9 s later', async () => {
    const killed = await openKilled()
    await killed.openPostpaid(call(ann)).onTaken(used(70))
    clock.at -= 86_400_000
    const restarted = await restart()
    expect(await restarted.calls()).toEqual([])

    clock.at += leaseMs
    await restarted.chargeKilledCalls()

    expect(await restarted.calls()).toMatchObject([{ status: 'killed', tokens: { output: 70 } }])
    expect(await spent()).toBe(costOf(70))
  })

  test('a lease of an earlier version, which lasts a minute, is not shortened, and costs nothing', async () => {
    const ledger = await openKilled()
    await database.query(
      "INSERT INTO modelmount_funds (id, caller, at, nano_usd, expires_at) VALUES ('old', 'ann', ?, 5, ?)",
      [clock.at, clock.at + 60_000],
    )
    clock.at += 59_999
    await ledger.chargeKilledCalls()
    expect(await stored()).toEqual([{ id: 'old' }])
    clock.at += 1
    await ledger.chargeKilledCalls()

    expect(await stored()).toEqual([])
    expect(await ledger.calls()).toEqual([])
  })

  test('running calls of this process are not charged as killed, even after it slept', async () => {
    const ledger = await openKilled()
    const running = ledger.openPostpaid(call(ann))
    await running.onTaken(used(70))
    clock.at += 3_600_000
    await ledger.chargeKilledCalls()
    expect(await ledger.calls()).toEqual([])
    await running.settle({ usage: used(71), status: 'aborted', durationMs: 5 })

    expect(await ledger.calls()).toMatchObject([{ status: 'aborted', nanoUsd: costOf(71) }])
  })

  test('a database that fails delays no reader for long, and the next note is written again', async () => {
    const ledger = await openKilled()
    const running = ledger.openPostpaid(call(ann))
    await database.query('ALTER TABLE modelmount_funds RENAME TO away')
    await running.onTaken(used(70))
    expect(running.onTaken(used(80))).toBeUndefined()
    await database.query('ALTER TABLE away RENAME TO modelmount_funds')
    await running.onTaken(used(140))

    expect(await stored()).toEqual([{ id: 'call' }])
  })

  test('a caller whose note cannot be charged does not keep others from being charged', async () => {
    const killed = await openKilled()
    for (const id of ['aaa', 'mmm', 'zzz']) {
      const running = killed.openPostpaid(call({ id }, id))
      await running.onTaken(used(96))
    }
    await database.query("UPDATE modelmount_funds SET note = '{' WHERE caller <> 'mmm'")
    clock.at += leaseMs

    const restarted = await restart()

    expect(await restarted.calls()).toMatchObject([{ id: 'mmm', status: 'killed' }])
    expect(errors).toEqual([expect.any(SyntaxError), expect.any(SyntaxError)])
  })

  test('a ledger that is closed at once, such as that of a command, leaves killed calls to the others', async () => {
    const killed = await openKilled()
    await killed.openPostpaid(call(ann)).onTaken(used(96))
    clock.at += leaseMs

    const command = await open()
    await command.close()

    expect(await stored()).toEqual([{ id: 'call' }])
    expect(await (await restart()).calls()).toMatchObject([{ id: 'call', status: 'killed' }])
  })

  test('more killed calls than one transaction charges are charged, too', async () => {
    const killed = await openKilled()
    for (let index = 0; index < 201; index++) killed.openPostpaid(call(ann, `call ${index}`)).onTaken(used(1))
    await killed.renew()
    clock.at += leaseMs

    const restarted = await restart()

    expect(await restarted.report({ by: 'key' })).toMatchObject([{ calls: 200 }])
    await restarted.chargeKilledCalls()
    expect(await restarted.report({ by: 'key' })).toMatchObject([{ calls: 201 }])
    expect(await spent()).toBe(201 * costOf(1))
  })

  test('usage that cannot be charged is not noted', async () => {
    const ledger = await openKilled()
    await ledger.openPostpaid(call(ann)).onTaken(used(1e300))
    clock.at += leaseMs
    await ledger.close()
    const restarted = await restart()

    expect(await restarted.calls()).toEqual([])
  })
})
