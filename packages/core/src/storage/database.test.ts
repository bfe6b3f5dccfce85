/** Tests of every database, then of each driver. */
import { execFile } from 'node:child_process'
import { statSync } from 'node:fs'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { databases } from '../../../../test/support/databases.ts'
import { hostPool } from '../../../../test/support/host-pool.ts'
import type { Database } from './database.ts'
import { openDatabase } from './open.ts'
import { openPostgres } from './postgres.ts'

const all = databases()

describe.each(all)('$name', ({ name, fresh }) => {
  let location: string
  let database: Database

  beforeEach(async () => {
    location = await fresh()
    database = await openDatabase(location)
    await database.query('CREATE TABLE things (id TEXT PRIMARY KEY, amount BIGINT NOT NULL)')
  })
  afterEach(() => database.close())

  const add = (id: string, amount: number | bigint, to: Pick<Database, 'query'> = database) =>
    to.query('INSERT INTO things (id, amount) VALUES (?, ?)', [id, amount])
  const amounts = () => database.query('SELECT id, amount FROM things ORDER BY id')

  test('a query returns values as they were written', async () => {
    await add('a', 1)
    await add('b\' ? -- " 𝄞', Number.MAX_SAFE_INTEGER)
    await add('c', 2n ** 53n)
    await add('d', -(2n ** 63n))

    expect(await amounts()).toEqual([
      { id: 'a', amount: 1 },
      { id: 'b\' ? -- " 𝄞', amount: Number.MAX_SAFE_INTEGER },
      { id: 'c', amount: 2n ** 53n },
      { id: 'd', amount: -(2n ** 63n) },
    ])
  })

  test('question marks in strings, identifiers and comments are not parameters', async () => {
    const [row] = await database.query(`SELECT '?''?' AS "a?", ${integer('?')} AS b /* ? */ -- ?`, [7])

    expect(row).toEqual({ 'a?': "?'?", b: 7 })
  })

  test('integer division stays integer', async () => {
    expect(await database.query(`SELECT ${integer('?')} / 2 AS half`, [7])).toEqual([{ half: 3 }])
  })

  test('sums, booleans, fractions, NULL and bytes', async () => {
    const bytes = name === 'SQLite' ? 'BLOB' : 'BYTEA'
    await database.query(`CREATE TABLE others (fraction DOUBLE PRECISION, absent TEXT, bytes ${bytes})`)
    await database.query('INSERT INTO others (fraction, absent, bytes) VALUES (?, ?, ?)', [
      0.1,
      null,
      Uint8Array.of(0, 255, 92),
    ])
    await add('a', 2n ** 53n)
    await add('b', 5)

    expect(
      await database.query('SELECT sum(amount) AS total, count(*) AS n, 1 < 2 AS truth FROM things'),
    ).toEqual([{ total: 2n ** 53n + 5n, n: 2, truth: 1 }])
    const [row] = await database.query<{ bytes: Uint8Array }>('SELECT * FROM others')
    expect(row).toMatchObject({ fraction: 0.1, absent: null })
    expect([...(row?.bytes ?? [])]).toEqual([0, 255, 92])
  })

  test('a wrong number of parameters is an error', async () => {
    await expect(database.query('SELECT * FROM things WHERE id = ?')).rejects.toThrow(
      'Expected 1 parameters, got 0',
    )
    await expect(database.query('SELECT 1', [1])).rejects.toThrow('Expected 0 parameters, got 1')
  })

  test('RETURNING returns changed rows, and ON CONFLICT updates existing ones', async () => {
    await add('a', 1)

    const changed = await database.query(
      'INSERT INTO things VALUES (?, ?), (?, ?) ON CONFLICT (id) DO UPDATE SET amount = things.amount + excluded.amount RETURNING id, amount',
      ['a', 10, 'b', 20],
    )

    expect(changed).toEqual([
      { id: 'a', amount: 11 },
      { id: 'b', amount: 20 },
    ])
  })

  test("the clock is the machine's clock, in whole milliseconds", async () => {
    const before = Date.now()

    const [row] = await database.query<{ now: number }>(`SELECT ${database.clock} AS now`)

    expect(row?.now).toSatisfy(Number.isInteger)
    expect(row?.now).toBeGreaterThanOrEqual(before - 1)
    expect(row?.now).toBeLessThanOrEqual(Date.now() + 1)
  })

  test('a transaction commits as a whole and returns its result', async () => {
    const result = await database.transaction(async (queries) => {
      await add('a', 1, queries)
      await add('b', 2, queries)
      return 'done'
    })

    expect(result).toBe('done')
    expect(await amounts()).toHaveLength(2)
  })

  test('a transaction that throws is rolled back, and the next one runs', async () => {
    const failing = database.transaction(async (queries) => {
      await add('a', 1, queries)
      throw new Error('on purpose')
    })
    await expect(failing).rejects.toThrow('on purpose')

    await database.transaction((queries) => add('b', 2, queries))

    expect(await amounts()).toEqual([{ id: 'b', amount: 2 }])
  })

  test('a transaction with an invalid statement rejects with its error', async () => {
    await expect(database.transaction(({ query }) => query('SELECT * FROM nowhere'))).rejects.toThrow(
      /nowhere/,
    )
    expect(await amounts()).toEqual([])
  })

  test('queries outside of a transaction are not part of it', async () => {
    const failing = database.transaction(async (queries) => {
      await add('a', 1, queries)
      throw new Error('on purpose')
    })
    const beside = add('b', 2)

    await expect(failing).rejects.toThrow()
    await beside
    expect(await amounts()).toEqual([{ id: 'b', amount: 2 }])
  })

  test('queries after the end of a transaction reject', async () => {
    const query = await database.transaction(async ({ query }) => query)

    await expect(query('SELECT 1')).rejects.toThrow('The transaction is over.')
  })

  test('parallel transactions of several connections lose no update', async () => {
    const others = await Promise.all([openDatabase(location), openDatabase(location)])
    onTestFinished(async () => void (await Promise.all(others.map((other) => other.close()))))
    await add('counter', 0)
    const count = (database: Database) =>
      database.transaction(async ({ query }) => {
        const [row] = await query<{ amount: number }>(
          'UPDATE things SET amount = amount WHERE id = ? RETURNING amount',
          ['counter'],
        )
        await query('UPDATE things SET amount = ? WHERE id = ?', [(row?.amount ?? 0) + 1, 'counter'])
      })

    await Promise.all([database, ...others].flatMap((one) => Array.from({ length: 50 }, () => count(one))))

    expect(await amounts()).toEqual([{ id: 'counter', amount: 150 }])
  })

  test('exclusive transactions exclude each other on all connections', async () => {
    const other = await openDatabase(location)
    onTestFinished(() => other.close())
    let [inside, most] = [0, 0]
    const work = async ({ query }: Pick<Database, 'query'>) => {
      most = Math.max(most, ++inside)
      await query('SELECT 1')
      inside--
    }

    await Promise.all(
      [database, other, database, other].map((one) => one.transaction(work, { exclusive: true })),
    )

    expect(most).toBe(1)
  })

  const integer = (text: string): string => `CAST(${text} AS BIGINT)`
})

test('an SQLite file is readable by its owner only, in new folders', async () => {
  const path = (await all[0]?.fresh())?.replace('.db', '/deep/data.db') ?? ''

  const database = await openDatabase(path)
  onTestFinished(() => database.close())
  await database.query('CREATE TABLE t (a TEXT)')

  expect((statSync(path).mode & 0o777).toString(8)).toBe('600')
  expect((statSync(`${path}-wal`).mode & 0o777).toString(8)).toBe('600')
})

test('SQLite waits for another writing process without blocking the event loop', async () => {
  const path = (await all[0]?.fresh()) ?? ''
  const [database, other] = [await openDatabase(path), await openDatabase(path)]
  onTestFinished(async () => void (await Promise.all([database.close(), other.close()])))
  await database.query('CREATE TABLE t (a TEXT)')
  let turns = 0
  let lock = (): void => {}
  const locked = new Promise<void>((resolve) => {
    lock = resolve
  })

  const slow = other.transaction(async ({ query }) => {
    await query("INSERT INTO t VALUES ('first')")
    lock()
    while (turns < 20) await new Promise((resolve) => setImmediate(resolve, turns++))
  })
  await locked
  await database.query("INSERT INTO t VALUES ('second')")
  await slow

  expect(await database.query('SELECT a FROM t')).toEqual([{ a: 'first' }, { a: 'second' }])
})

test('in-memory SQLite databases are separate', async () => {
  const [one, other] = [await openDatabase(':memory:'), await openDatabase(':memory:')]
  await one.query('CREATE TABLE t (a TEXT)')

  await expect(other.query('SELECT * FROM t')).rejects.toThrow()
  await Promise.all([one.close(), other.close()])
})

describe.runIf(all.length > 1)('PostgreSQL alone', () => {
  test('the pool of the app is used, and left open', async () => {
    const pool = hostPool({ connectionString: (await all[1]?.fresh()) ?? '' })
    const database = await openDatabase(pool)

    expect(await database.query('SELECT 2 ^ 3 = ? AS truth', [8])).toEqual([{ truth: 1 }])
    await database.close()

    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
  })

  test('one of two deadlocked transactions is repeated', async () => {
    const database = await openDatabase((await all[1]?.fresh()) ?? '')
    onTestFinished(() => database.close())
    await database.query("CREATE TABLE t AS SELECT 'a' AS id, 0 AS n UNION SELECT 'b', 0")
    let both: (() => void) | undefined
    const bothInside = new Promise<void>((resolve) => {
      both = resolve
    })
    let inside = 0
    const inOrder = (first: string, second: string) =>
      database.transaction(async ({ query }) => {
        await query('UPDATE t SET n = n + 1 WHERE id = ?', [first])
        if (++inside === 2) both?.()
        await bothInside
        await query('UPDATE t SET n = n + 1 WHERE id = ?', [second])
      })

    await Promise.all([inOrder('a', 'b'), inOrder('b', 'a')])

    // At least one of the two was repeated.
    expect(inside).toBeGreaterThanOrEqual(3)
    expect(await database.query('SELECT n FROM t')).toEqual([{ n: 2 }, { n: 2 }])
  })

  test('a connection that the server ends fails its transaction, and is replaced', async () => {
    const database = await openDatabase((await all[1]?.fresh()) ?? '')
    onTestFinished(() => database.close())
    const broken = database.transaction(async ({ query }) => {
      await query('SELECT pg_terminate_backend(pg_backend_pid())')
    })

    await expect(broken).rejects.toThrow()
    expect(await database.query('SELECT 1 AS one')).toEqual([{ one: 1 }])
  })

  test('opening an unreachable database rejects', async () => {
    await expect(openDatabase('postgres://nobody@127.0.0.1:1/none')).rejects.toThrow(/ECONNREFUSED/)
  })

  describe('time limits', () => {
    const responseTimeoutMs = 2_000
    let url: string
    let database: Database

    beforeEach(async () => {
      url = (await all[1]?.fresh()) ?? ''
      database = await openPostgres(url, responseTimeoutMs)
      await database.query('CREATE TABLE t (id TEXT PRIMARY KEY, n INTEGER)')
      await database.query("INSERT INTO t VALUES ('a', 0)")
      return () => database.close()
    })

    /** Locks the row until the client ends. */
    const lockRow = async (client: pg.Client) => {
      await client.connect()
      client.on('error', () => {})
      await client.query('BEGIN')
      await client.query("UPDATE t SET n = 5 WHERE id = 'a'")
    }

    test.each(['a single statement', 'a transaction'])(
      '%s that waits for a lock is unavailable after half of the time limit',
      async (kind) => {
        const client = new pg.Client({ connectionString: url })
        await lockRow(client)
        onTestFinished(() => client.end())
        const add = ({ query }: Pick<Database, 'query'>) => query("UPDATE t SET n = n + 1 WHERE id = 'a'")

        const waiting =
          kind === 'a transaction'
            ? database.transaction(add)
            : add({ query: (...asked) => database.query(...asked) })

        await expect(waiting).rejects.toMatchObject({ code: 'unavailable', cause: { code: '55P03' } })
        expect(await database.query('SELECT n FROM t')).toEqual([{ n: 0 }])
      },
    )

    test('a transaction that is idle for too long is ended, and repeated', async () => {
      let attempts = 0
      const idle = database.transaction(async ({ query }) => {
        await query("UPDATE t SET n = n + 1 WHERE id = 'a'")
        if (++attempts > 1) return
        const others = await openPostgres(url, responseTimeoutMs)
        onTestFinished(() => others.close())
        // Waits for the lock until the server ends this transaction.
        await others.query("UPDATE t SET n = n + 10 WHERE id = 'a'")
      })

      await idle

      expect(attempts).toBe(2)
      expect(await database.query('SELECT n FROM t')).toEqual([{ n: 11 }])
    })

    test('a statement in a transaction that takes too long is cancelled by the server', async () => {
      const slow = database.transaction(({ query }) => query('SELECT pg_sleep(60)'))

      await expect(slow).rejects.toMatchObject({ code: 'unavailable', cause: { code: '57014' } })
      const [running] = await database.query(
        "SELECT count(*) AS n FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND state = 'active' AND pid <> pg_backend_pid()",
      )
      expect(running).toEqual({ n: 0 })
    })

    test('the time limits end with the transaction, as the connection may belong to the host app', async () => {
      const pool = hostPool({ connectionString: url, max: 1 })
      const shared = await openPostgres(pool, responseTimeoutMs)
      const limitsOf = async () =>
        (await shared.query("SELECT current_setting('lock_timeout') AS lock"))[0] as object

      const inside = await shared.transaction(({ query }) => query('SHOW lock_timeout'))

      expect(inside).toEqual([{ lock_timeout: '1s' }])
      expect(await limitsOf()).toEqual({ lock: '0' })
    })
  })

  test('an invalid statement is not taken for a failure of the database', async () => {
    const database = await openDatabase((await all[1]?.fresh()) ?? '')
    onTestFinished(() => database.close())

    await expect(database.query('SELECT * FROM nowhere')).rejects.toMatchObject({ code: '42P01' })
  })

  test('a finished app exits without closing the database', async () => {
    const url = (await all[1]?.fresh()) ?? ''
    const open = new URL('../../dist/storage/open.js', import.meta.url)
    const code = `const { openDatabase } = await import(${JSON.stringify(open.href)}); await openDatabase(${JSON.stringify(url)})`

    await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', code], { timeout: 10_000 })
  })
})
