/** An unresponsive PostgreSQL: a lost network or a stopped server. SQLite runs in this process. */
import pg from 'pg'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { databases } from '../../../../test/support/databases.ts'
import { type SilentProxy, silentProxy } from '../../../../test/support/silent-proxy.ts'
import { type Database, UncertainOutcome } from './database.ts'
import { openPostgres } from './postgres.ts'

const [, postgres] = databases()
const answerMs = 300

describe.runIf(postgres).each(['our pool', 'the pool of the app'])(
  'an unresponsive PostgreSQL, %s',
  (whose) => {
    let proxy: SilentProxy
    let database: Database
    let isClosed: boolean

    beforeEach(async () => {
      isClosed = false
      proxy = await silentProxy((await postgres?.fresh()) ?? '')
      const pool =
        whose === 'a pool of ours' ? undefined : new pg.Pool({ connectionString: proxy.url, max: 2 })
      pool?.on('error', () => {})
      database = await openPostgres(pool ?? proxy.url, answerMs)
      await database.query('CREATE TABLE things (id TEXT PRIMARY KEY)')
      onTestFinished(async () => {
        // The app's own pool may wait without a limit.
        await proxy.close()
        if (!isClosed) await database.close()
        await pool?.end()
      })
    })

    const add = (id: string) => database.query('INSERT INTO things VALUES (?)', [id])
    const things = async () =>
      (await database.query<{ id: string }>('SELECT id FROM things')).map(({ id }) => id)

    test('fails queries, open transactions and new connections within the time limit', async () => {
      const silenced = database.transaction(async ({ query }) => {
        await query("INSERT INTO things VALUES ('a')")
        proxy.silence()
        await query("INSERT INTO things VALUES ('b')")
      })
      await expect(silenced).rejects.toThrow('has not answered within 300 ms')

      const asked = await Promise.allSettled([add('c'), add('d'), add('e'), add('f')])

      expect(asked.map(({ status }) => status)).toEqual(Array(4).fill('rejected'))
    })

    test('is used again by new connections, without unfinished work', async () => {
      proxy.silence()
      await expect(Promise.all([add('a'), add('b')])).rejects.toThrow()
      proxy.speak()

      await expect
        .poll(() =>
          add('c').then(
            () => true,
            () => false,
          ),
        )
        .toBe(true)

      expect(await things()).toEqual(['c'])
    })

    test('an unconfirmed commit rejects with UncertainOutcome', async () => {
      const silenced = database.transaction(async ({ query }) => {
        await query("INSERT INTO things VALUES ('a')")
        proxy.silence()
      })

      await expect(silenced).rejects.toThrow(UncertainOutcome)
    })

    test('can be closed', async () => {
      proxy.silence()
      const asked = add('a')

      await database.close()
      isClosed = true

      await expect(asked).rejects.toThrow()
    })
  },
)
