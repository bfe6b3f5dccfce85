/** If createLlm() fails, it closes the database that it opened. A pool of the host app stays open. */
import pg from 'pg'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createLlm } from '../../packages/core/src/create-llm.ts'
import type { LlmOptions } from '../../packages/core/src/options.ts'
import { openDatabase } from '../../packages/core/src/storage/open.ts'
import { scriptedEngine } from '../../packages/core/src/testing/scripted-engine.ts'
import { databases } from '../support/databases.ts'
import { hostPool } from '../support/host-pool.ts'

const open = (options: LlmOptions) => createLlm({ engine: scriptedEngine(''), models: [], ...options })

/** Makes the migrations of `owner` look like those of another version. */
const spoil = async (location: string, owner: string): Promise<void> => {
  await (await open({ auth: 'keys', database: location })).close()
  const database = await openDatabase(location)
  await database.query('UPDATE modelmount_migrations SET checksum = ? WHERE owner = ?', ['other', owner])
  await database.close()
}

/** Called whenever a database is closed. The databases themselves are real. */
const closed = vi.hoisted(() => vi.fn())
vi.mock('../../packages/core/src/storage/open.ts', async (importOriginal) => {
  const real = await importOriginal<typeof import('../../packages/core/src/storage/open.ts')>()
  const openDatabase: typeof real.openDatabase = async (where) => {
    const database = await real.openDatabase(where)
    const close = database.close.bind(database)
    database.close = () => {
      closed()
      return close()
    }
    return database
  }
  return { ...real, openDatabase }
})
beforeEach(() => void closed.mockClear())

const all = databases()

describe.each(all)('createLlm() that fails closes its database ($name)', ({ name, fresh }) => {
  const expectClosed = async (location: string): Promise<void> => {
    expect(closed).toHaveBeenCalledTimes(1)
    if (name === 'SQLite') return
    const client = new pg.Client(location)
    await client.connect()
    onTestFinished(() => client.end())
    const others = async (): Promise<unknown> =>
      (
        await client.query(
          `SELECT count(*)::int AS others FROM pg_stat_activity
           WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`,
        )
      ).rows[0]
    await expect.poll(others).toEqual({ others: 0 })
  }

  test.each(['keys', 'limits', 'usage'])('after a failed migration of the %s tables', async (owner) => {
    const location = await fresh()
    await spoil(location, owner)
    closed.mockClear()

    await expect(open({ auth: 'keys', database: location })).rejects.toThrow(`of ${owner} differs`)

    await expectClosed(location)
  })

  test('after an invalid option', async () => {
    const location = await fresh()

    await expect(open({ auth: 'guess' as 'keys', database: location })).rejects.toThrow('Expected `auth`')

    await expectClosed(location)
  })
})

test('an app with SQLite may be closed twice', async () => {
  const llm = await open({ auth: 'keys', database: await (all[0] as (typeof all)[number]).fresh() })

  await Promise.all([llm.close(), llm.close()])
  await llm.close()

  await expect(llm.keys.create({ name: 'late' })).rejects.toMatchObject({ code: 'unavailable' })
})

test.runIf(all.length > 1)('a pool of the host app stays open when createLlm() fails', async () => {
  const location = await (all.at(-1) as (typeof all)[number]).fresh()
  await spoil(location, 'usage')
  const pool = hostPool({ connectionString: location })

  await expect(open({ auth: 'keys', database: pool })).rejects.toThrow('of usage differs')

  expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
})
