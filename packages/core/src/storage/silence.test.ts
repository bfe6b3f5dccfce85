/**
 * Tests with an unresponsive PostgreSQL, as after a lost network. SQLite needs no such tests: it runs in this
 * process.
 */
import pg from 'pg'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { databases } from '../../../../test/support/databases.ts'
import { type SilentProxy, silentProxy } from '../../../../test/support/silent-proxy.ts'
import { type Database, UncertainOutcome } from './database.ts'
import { openPostgres } from './postgres.ts'

const [, postgres] = databases()
const answerMs = 300

describe.runIf(postgres).each(['its own pool', 'a pool of the host app'])(
  'a database with %s and an unresponsive PostgreSQL',
  (poolOwner) => {
    let proxy: SilentProxy
    let database: Database
    let isClosed: boolean

    beforeEach(async () => {
      isClosed = false
      proxy = await silentProxy((await postgres?.fresh()) ?? '')
      const pool =
        poolOwner === 'its own pool' ? undefined : new pg.Pool({ connectionString: proxy.url, max: 2 })
      pool?.on('error', () => {})
      database = await openPostgres(pool ?? proxy.url, answerMs)
      await database.query('CREATE TABLE things (id TEXT PRIMARY KEY)')
      onTestFinished(async () => {
        // A pool of the host app may wait for PostgreSQL without a time limit.
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
      const error: unknown = await silenced.catch((error: unknown) => error)
      expect(error).toMatchObject({ code: 'unavailable', details: { retryAfterMs: 1_000 } })
      // The server ends the idle transaction at the same time, which closes the connection of the proxy.
      expect(String((error as Error).cause)).toMatch(/The connection to PostgreSQL failed: /)

      const results = await Promise.allSettled([add('c'), add('d'), add('e'), add('f')])

      expect(results.map(({ status }) => status)).toEqual(Array(4).fill('rejected'))
    })

    test('uses new connections after the server responds again, without the unfinished work', async () => {
      proxy.silence()
      await expect(Promise.all([add('a'), add('b')])).rejects.toThrow()
      proxy.resume()

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

    test('rejects an unconfirmed commit with UncertainOutcome', async () => {
      const silenced = database.transaction(async ({ query }) => {
        await query("INSERT INTO things VALUES ('a')")
        proxy.silence()
      })

      await expect(silenced).rejects.toThrow(UncertainOutcome)
    })

    test('closes, and rejects the running query', async () => {
      proxy.silence()
      // The handler is attached before `close()`, which waits for the query if the pool is its own.
      const rejected = expect(add('a')).rejects.toThrow()

      await database.close()
      isClosed = true

      await rejected
    })
  },
)
