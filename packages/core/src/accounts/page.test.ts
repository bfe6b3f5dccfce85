/** Pages of keys, limit requests, calls and reports. */
import { beforeEach, describe, expect, test } from 'vitest'
import { databases } from '../../../../test/support/databases.ts'
import { uncached } from '../engine/events.ts'
import type { Database } from '../storage/database.ts'
import { openDatabase } from '../storage/open.ts'
import { type Keys, openKeys } from './keys/keys.ts'
import type { PageQuery } from './page.ts'
import { type Ledger, openLedger } from './usage/ledger.ts'
import type { UsageQuery } from './usage/report.ts'

describe.each(databases())('in $name', ({ fresh }) => {
  let database: Database
  let keys: Keys
  let ledger: Ledger
  const clock = { at: Date.parse('2026-11-01T10:00:00Z') }

  beforeEach(async () => {
    database = await openDatabase(await fresh())
    keys = await openKeys(database)
    ledger = await openLedger(database, { now: () => clock.at })
    return async () => {
      await ledger.close()
      await keys.close()
      await database.close()
    }
  })

  const call = async (caller: string, id: string, model = 'tiny') => {
    const usage = { ...uncached, inputTokens: 1, reusedTokens: 0, outputTokens: 1, undeliveredTokens: 0 }
    await ledger
      .openPostpaid({ id, caller: { id: caller, tenant: `team of ${caller}` }, model })
      .settle({ usage, status: 'ended', durationMs: 0 })
  }

  /** Reads a list page by page, and returns the ids of each page. */
  const pagesOf = async <Row>(
    list: (page: PageQuery) => Promise<readonly Row[]>,
    idOf: (row: Row) => string,
  ): Promise<readonly (readonly string[])[]> => {
    const pages: string[][] = []
    for (let after: string | undefined; ; after = pages.at(-1)?.at(-1)) {
      const ids = (await list({ limit: 2, after })).map(idOf)
      pages.push(ids)
      if (ids.length < 2) return pages
    }
  }

  test('pages of keys contain each key once, the newest first, even if all are of one moment', async () => {
    for (let count = 0; count < 5; count++) await keys.create({ name: `key ${count}` })
    await database.query("UPDATE modelmount_keys SET created_at = 5 WHERE name > 'key 2'")
    const all = (await keys.list()).map(({ id }) => id)

    const pages = await pagesOf(
      (page) => keys.list(page),
      ({ id }) => id,
    )

    expect(pages.map((page) => page.length)).toEqual([2, 2, 1])
    expect(pages.flat()).toEqual(all)
    expect(new Set(all).size).toBe(5)
  })

  test('pages of limit requests contain each request once, the oldest first', async () => {
    let refused = ''
    for (let count = 0; count < 4; count++) {
      const { key } = await keys.create({ name: `key ${count}`, limits: { concurrent: 1 } })
      const { id } = await keys.requests.create({ key }, { limits: { concurrent: 2 } })
      if (count === 1) refused = (await keys.requests.refuse(id)).id
    }
    const all = (await keys.requests.list()).map(({ id }) => id)

    const pages = await pagesOf(
      (page) => keys.requests.list(page),
      ({ id }) => id,
    )
    const pending = await pagesOf(
      (page) => keys.requests.list({ ...page, status: 'pending' }),
      ({ id }) => id,
    )

    expect(pages.map((page) => page.length)).toEqual([2, 2, 0])
    expect(pages.flat()).toEqual(all)
    expect(pending.flat()).toEqual(all.filter((id) => id !== refused))
  })

  test('pages of calls contain each call once, the newest first, also those of one caller', async () => {
    for (const id of ['a', 'b', 'c', 'd', 'e']) {
      await call(id === 'c' ? 'bob' : 'ann', id)
      if (id === 'b' || id === 'd') clock.at += 60_000
    }

    expect(
      await pagesOf(
        (page) => ledger.calls(page),
        ({ id }) => id,
      ),
    ).toEqual([['e', 'c'], ['d', 'a'], ['b']])
    expect(
      await pagesOf(
        (page) => ledger.calls({ ...page, caller: 'ann' }),
        ({ id }) => id,
      ),
    ).toEqual([['e', 'd'], ['a', 'b'], []])
  })

  test.each(['key', 'tenant', 'model', 'day'] as const)(
    'pages of a report by %s contain each row once',
    async (by) => {
      for (const name of ['ann', 'bob', 'cat']) {
        await call(name, `1 ${name}`, `model of ${name}`)
        await call(name, `2 ${name}`, `model of ${name}`)
        clock.at += 86_400_000
      }
      const report = (page: PageQuery) => ledger.report({ by, ...page })
      const all = await report({})

      const pages = await pagesOf(report, ({ group }) => group)

      expect(all.map(({ calls }) => calls)).toEqual([2, 2, 2])
      expect(pages.flat()).toEqual(all.map(({ group }) => group))
      expect(await report({ limit: 1, after: all[0]?.group })).toEqual([all[1]])
      expect(await report({ after: '\0' })).toBeInstanceOf(Array)
    },
  )

  test.each([0, -1, 1.5, 1_001, Number.NaN, Number.POSITIVE_INFINITY, '5'])(
    'a limit of %s is rejected in each list',
    async (limit) => {
      const page = { limit } as PageQuery
      const error = { code: 'invalid_request', details: { param: 'limit' } }

      await expect(keys.list(page)).rejects.toMatchObject(error)
      await expect(keys.requests.list(page)).rejects.toMatchObject(error)
      await expect(ledger.calls(page)).rejects.toMatchObject(error)
      await expect(ledger.report({ by: 'key', ...page } as UsageQuery)).rejects.toMatchObject(error)
    },
  )

  test.each(['key_none', '', "' OR 1 = 1", '\0', 'x'.repeat(100_000)])(
    'a page after an unknown entry is rejected (%#)',
    async (after) => {
      const error = { code: 'invalid_request', details: { param: 'after' } }

      await expect(keys.list({ after })).rejects.toMatchObject(error)
      await expect(keys.requests.list({ after })).rejects.toMatchObject(error)
      await expect(ledger.calls({ after })).rejects.toMatchObject(error)
    },
  )
})
