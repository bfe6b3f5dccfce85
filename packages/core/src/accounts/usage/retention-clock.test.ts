import { beforeEach, describe, expect, test } from 'vitest'
import { databases } from '../../../../../test/support/databases.ts'
import type { Database } from '../../storage/database.ts'
import { openDatabase } from '../../storage/open.ts'
import { openLedger } from './ledger.ts'
import { observeClock } from './retention-clock.ts'

const day = 86_400_000
const start = Date.parse('2026-11-22T12:00:00Z')
const years = 10 * 365 * day

describe.each(databases())('in $name', ({ fresh }) => {
  let database: Database

  beforeEach(async () => {
    database = await openDatabase(await fresh())
    await (await openLedger(database)).close()
    return () => database.close()
  })

  /** Returns the horizon of 90 days, in days from the start. */
  const observe = async (days: number): Promise<number> =>
    ((await observeClock(database, String(start + days * day)))(90 * day) - start) / day
  const observeDaily = async (from: number, to: number): Promise<number> => {
    for (let days = from; days < to; days += 5) await observe(days)
    return observe(to)
  }

  test('all time counts while an app runs', async () => {
    expect(await observe(0)).toBe(-90)
    expect(await observe(7)).toBe(-83)
    expect(await observeDaily(12, 120)).toBe(30)
  })

  test('a jump of years does not count, even if the clock stays wrong and comes back', async () => {
    await observe(0)

    expect(await observe(years / day)).toBe(-90)
    expect(await observeDaily(years / day, years / day + 60)).toBe(-30)
    expect(await observe(60)).toBe(-30)
    expect(await observeDaily(60, 149)).toBe(59)
  })

  test('a jump that is never corrected counts after all rows have been kept for their time', async () => {
    await observe(0)

    const later = years / day
    expect(await observeDaily(later, later + 89)).toBe(-1)
    expect(await observe(later + 90)).toBe(later)
  })

  test('a time without any app keeps rows longer by this time', async () => {
    await observeDaily(0, 20)

    expect(await observe(50)).toBe(-70)
    expect(await observeDaily(50, 139)).toBe(19)
    expect(await observe(140)).toBe(50)
  })

  test('several processes count time once', async () => {
    await observe(0)
    await Promise.all([1, 2, 3, 4].map(() => observe(6)))

    expect(await observe(7)).toBe(-83)
  })
})
