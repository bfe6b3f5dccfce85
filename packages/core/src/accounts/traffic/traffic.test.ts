import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { databases } from '../../../../../test/support/databases.ts'
import type { Database } from '../../storage/database.ts'
import { migrate } from '../../storage/migrations.ts'
import { openDatabase } from '../../storage/open.ts'
import { bucketOf, percentilesOf } from './buckets.ts'
import { trafficTables } from './tables.ts'
import { deleteOldTraffic, TrafficData } from './traffic-data.ts'
import { type CountedTraffic, dayMs, hourMs, TrafficRecorder } from './traffic-recorder.ts'
import { queryTraffic, type TrafficQuery } from './traffic-report.ts'

const noon = Date.UTC(2026, 10, 27, 12)
const call: CountedTraffic = {
  ...{ caller: 'ada', tenant: 'team', model: 'tiny:latest', isError: false },
  ...{ inputTokens: 10, cachedInputTokens: 4, outputTokens: 5, nanoUsd: 7 },
  ...{ durationMs: 1_000, firstTokenMs: 100 },
}

describe.each(databases())('calls over time in $name', ({ fresh }) => {
  let database: Database
  let now: number
  const errors: unknown[] = []
  const open = (): TrafficRecorder =>
    new TrafficRecorder(
      database,
      (cause) => errors.push(cause),
      () => now,
    )
  const report = (query: TrafficQuery) => queryTraffic(database, { to: new Date(noon + dayMs), ...query })
  beforeEach(async () => {
    database = await openDatabase(await fresh())
    await migrate(database, 'traffic', trafficTables)
    now = noon
  })
  afterEach(async () => {
    await database.close()
    expect(errors.splice(0)).toEqual([])
  })

  async function count(...calls: readonly Partial<CountedTraffic>[]): Promise<void> {
    const recorder = open()
    for (const one of calls) recorder.add({ ...call, ...one })
    await recorder.close()
  }

  test('are sums of hours and of days, over all callers', async () => {
    await count(
      {},
      { caller: 'ben', isError: true, inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, nanoUsd: 0 },
    )
    now += hourMs
    await count({ model: 'other' })

    const hours = await report({ from: new Date(noon) })
    const days = await report({ interval: 'day', from: new Date(noon) })

    expect(hours.map(({ at, calls, errors }) => [at.getTime(), calls, errors])).toEqual([
      [noon, 2, 1],
      [noon + hourMs, 1, 0],
    ])
    expect(days).toMatchObject([
      { calls: 3, errors: 1, inputTokens: 20, cachedInputTokens: 8, outputTokens: 10, nanoUsd: 14n },
    ])
  })

  test('have groups by model and by key, and filters', async () => {
    await count({}, {}, { model: 'other' }, { caller: 'ben' }, { caller: '', tenant: '' })
    const from = new Date(noon)
    const groupsOf = async (query: TrafficQuery) =>
      (await report({ from, ...query })).map(({ group, calls }) => [group, calls])

    expect(await groupsOf({ by: 'model' })).toEqual([
      ['other', 1],
      ['tiny:latest', 4],
    ])
    expect(await groupsOf({ by: 'key' })).toEqual([
      ['', 1],
      ['ada', 3],
      ['ben', 1],
    ])
    expect(await groupsOf({ by: 'model', key: 'ada' })).toEqual([
      ['other', 1],
      ['tiny:latest', 2],
    ])
    expect(await groupsOf({ by: 'key', model: 'other' })).toEqual([['ada', 1]])
    expect(await groupsOf({ key: 'ben' })).toEqual([[undefined, 1]])
    expect(await groupsOf({ key: 'nobody' })).toEqual([])
  })

  test('by key, a report has the 100 callers with most calls', async () => {
    const callers = Array.from({ length: 110 }, (_, index) => ({ caller: `key ${index}` }))
    await count(...callers, ...callers.slice(0, 60))

    const rows = await report({ by: 'key', from: new Date(noon), to: new Date(noon + hourMs) })

    expect(rows).toHaveLength(100)
    expect(rows.filter(({ calls }) => calls === 2)).toHaveLength(60)
  })

  test('by key, a report about one model has the callers with most calls of this model', async () => {
    const busy = Array.from({ length: 100 }, (_, index) => ({ caller: `key ${index}` }))
    await count(...busy, ...busy, { caller: 'only', model: 'other' })

    const rows = await report({ by: 'key', model: 'other', from: new Date(noon) })

    expect(rows.map(({ group }) => group)).toEqual(['only'])
  })

  test('several processes add to the same sums', async () => {
    const recorders = Array.from({ length: 4 }, open)
    for (let round = 0; round < 20; round++)
      await Promise.all(
        recorders.map((recorder, index) => {
          recorder.add({ ...call, caller: `key ${(round + index) % 5}` })
          return recorder.write()
        }),
      )

    const [row] = await report({ interval: 'day', from: new Date(noon) })

    expect(row).toMatchObject({ calls: 80, nanoUsd: 560n })
  })

  test('counts that a failing database does not take are written later, once', async () => {
    await database.query('ALTER TABLE modelmount_traffic RENAME TO modelmount_elsewhere')
    const recorder = open()
    recorder.add(call)
    await recorder.write()
    expect(errors.splice(0)).toHaveLength(1)
    recorder.add({ ...call, durationMs: 5 })
    await database.query('ALTER TABLE modelmount_elsewhere RENAME TO modelmount_traffic')
    await recorder.close()

    expect(await report({ from: new Date(noon) })).toMatchObject([{ calls: 2, nanoUsd: 14n }])
  })

  test('after the recorder is closed, counts that a failing database does not take are not tried again', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    await database.query('ALTER TABLE modelmount_traffic RENAME TO modelmount_elsewhere')
    const recorder = open()
    recorder.add(call)
    await recorder.close()
    const write = vi.spyOn(recorder, 'write')
    vi.advanceTimersByTime(60_000)
    vi.useRealTimers()

    expect(errors.splice(0)).toHaveLength(1)
    expect(write).not.toHaveBeenCalled()
  })

  test('numbers that no database takes count as whole ones, and the tenant is that of the last call', async () => {
    await count({ inputTokens: Number.NaN, outputTokens: 1.6, durationMs: Number.NaN, firstTokenMs: -5 })
    await count({ tenant: 'moved' })

    expect(await report({ from: new Date(noon) })).toMatchObject([
      { calls: 2, inputTokens: 10, outputTokens: 7 },
    ])
    expect(await database.query('SELECT DISTINCT tenant FROM modelmount_traffic WHERE is_total = 0')).toEqual(
      [{ tenant: 'moved' }],
    )
  })

  test('a report by key over many intervals has fewer keys', async () => {
    await count(...Array.from({ length: 60 }, (_, index) => ({ caller: `key ${index}` })))

    const rows = await report({ by: 'key', from: new Date(noon - 7 * dayMs), to: new Date(noon + hourMs) })

    expect(rows).toHaveLength(11)
  })

  test('percentiles are at most 10 % off, and absent where no call has such a time', async () => {
    const times = Array.from({ length: 100 }, (_, index) => (index + 1) * 37)
    await count(...times.map((durationMs) => ({ durationMs, firstTokenMs: undefined })))

    const [row] = await report({ from: new Date(noon) })

    expect(row?.firstTokenMs).toBeUndefined()
    expect(Math.abs((row?.durationMs?.p50 ?? 0) / 1_850 - 1)).toBeLessThan(0.1)
    expect(Math.abs((row?.durationMs?.p95 ?? 0) / 3_515 - 1)).toBeLessThan(0.1)
  })

  test('the deletion of a tenant keeps the sums of all callers', async () => {
    await count({}, { caller: 'ben', tenant: 'other' }, { caller: 'solo', tenant: 'solo' })
    const data = new TrafficData(database, async () => {})

    expect(await data.deleteTenant({ tenant: 'team' } as never)).toEqual({ trafficSums: 2 })
    expect(await data.deleteTenant({ tenant: 'solo' } as never)).toEqual({ trafficSums: 2 })

    const from = new Date(noon)
    expect((await report({ by: 'key', from })).map(({ group }) => group)).toEqual(['ben'])
    expect(await report({ from })).toMatchObject([{ calls: 3 }])
    expect(
      await database.query('SELECT DISTINCT caller FROM modelmount_traffic_times ORDER BY caller'),
    ).toEqual([{ caller: '' }, { caller: 'ben' }])
  })

  test('old hours are deleted before old days', async () => {
    await count({})
    await deleteOldTraffic(database, { hours: noon + 1, days: noon - dayMs }, () => false)

    expect(await report({ from: new Date(noon) })).toEqual([])
    expect(await report({ interval: 'day', from: new Date(noon) })).toHaveLength(1)
    await deleteOldTraffic(database, { hours: noon + 1, days: noon + 1 }, () => false)
    expect(await database.query('SELECT 1 AS one FROM modelmount_traffic_times')).toEqual([])
  })

  test('a report has at most 1,000 intervals', async () => {
    await expect(report({ from: new Date(0) })).rejects.toMatchObject({ code: 'invalid_request' })
  })
})

test('the buckets hold times from below a millisecond to above a day', () => {
  expect(bucketOf(0)).toBe(0)
  expect(bucketOf(1e12)).toBe(bucketOf(86_400_000))
  expect(percentilesOf(new Map())).toBeUndefined()
  expect(percentilesOf(new Map([[bucketOf(0), 1]]))).toEqual({ p50: 1, p95: 1 })
})
