/** Tests of SQLite's threads: crashes, slow statements, large results and their end. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Worker } from 'node:worker_threads'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import type { Database } from './database.ts'
import { openSqlite } from './sqlite.ts'

/** All threads that were started. */
const threads = vi.hoisted((): Worker[] => [])
vi.mock('node:worker_threads', async (importOriginal) => {
  const real = await importOriginal<typeof import('node:worker_threads')>()
  class RecordedWorker extends real.Worker {
    constructor(...given: ConstructorParameters<typeof real.Worker>) {
      super(...given)
      threads.push(this)
    }
  }
  return { ...real, default: real, Worker: RecordedWorker }
})

const folder = emptyFolder()
const unavailable = { code: 'unavailable', status: 503, details: { retryAfterMs: 1_000 } }
const numbers = (end: number) =>
  `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${end}) SELECT i FROM n`
/** A query that takes SQLite a tenth of a second per million. */
const count = (end: number) => `SELECT count(*) AS n FROM (${numbers(end)})`

let database: Database
let log: string[]
let files = 0

beforeEach(async () => {
  threads.length = 0
  log = []
  database = await openSqlite(join(folder, `${++files}.db`), (_details, message) => log.push(message))
  onTestFinished(() => database.close())
  await database.query('CREATE TABLE things (id INTEGER PRIMARY KEY)')
})

const add = (id: number) => database.query('INSERT INTO things VALUES (?)', [id])
const ids = async () =>
  (await database.query<{ id: number }>('SELECT id FROM things ORDER BY id')).map(({ id }) => id)

describe('after a crash of the writing thread', () => {
  test('its transaction is rolled back and fails with 503, and the next one uses a new thread', async () => {
    await add(1)
    const crashed = database.transaction(async ({ query }) => {
      await query('INSERT INTO things VALUES (2)')
      await threads[0]?.terminate()
      await query('INSERT INTO things VALUES (3)')
    })
    await expect(crashed).rejects.toMatchObject(unavailable)

    await database.transaction(({ query }) => query('INSERT INTO things VALUES (4)'))

    expect(await ids()).toEqual([1, 4])
    expect(log).toEqual(['The database is available again'])
  })

  test('queries of all kinds work', async () => {
    await add(1)
    await threads[0]?.terminate()

    expect(await ids()).toEqual([1])
    await add(2)
    expect(await ids()).toEqual([1, 2])
  })

  test('a database in memory fails with 503', async () => {
    const inMemory = await openSqlite(':memory:')
    onTestFinished(() => inMemory.close())
    await threads.at(-1)?.terminate()

    await expect(inMemory.query('SELECT 1')).rejects.toMatchObject(unavailable)
    await expect(inMemory.transaction(({ query }) => query('SELECT 1'))).rejects.toMatchObject(unavailable)
  })
})

test('after a crash of a reading thread, its query runs in another thread', async () => {
  await add(1)
  expect(await ids()).toEqual([1])
  const slow = database.query(count(1_000_000))
  await expect.poll(() => threads.length).toBeGreaterThan(2)

  // Not `terminate()`: the driver of Node 20 ends the process if its thread is stopped in a statement.
  for (const reader of threads.slice(1)) reader.emit('error', new Error('The thread is out of memory.'))

  expect(await slow).toEqual([{ n: 1_000_000 }])
  expect(await ids()).toEqual([1])
})

test('quick queries overtake slow ones, even if more of these run than there are threads', async () => {
  await add(1)
  await ids()
  let finished = 0
  const slow = [1, 2, 3, 4].map((n) =>
    database.query(count(1_000_000 + n), [], { isSlow: true }).then(() => finished++),
  )

  for (let i = 0; i < 20; i++) expect(await ids()).toEqual([1])

  expect(finished).toBe(0)
  await Promise.all(slow)
})

test('beyond 2 running and 100 queued slow queries, another fails with 503', async () => {
  const slow = Array.from({ length: 103 }, () => database.query('SELECT 1 AS n', [], { isSlow: true }))

  const settled = await Promise.allSettled(slow)

  expect(settled.map(({ status }) => status)).toEqual([...Array(102).fill('fulfilled'), 'rejected'])
  await expect(slow[102]).rejects.toMatchObject(unavailable)
})

test('a transaction without a statement for 4 s is rolled back and repeated, so that others can write', async () => {
  const other = await openSqlite(join(folder, `${files}.db`))
  onTestFinished(() => other.close())
  let attempts = 0

  await database.transaction(async ({ query }) => {
    await query('INSERT INTO things VALUES (?)', [++attempts])
    // The write of the other connection gets the lock when this transaction has lost it.
    if (attempts === 1) await other.query('INSERT INTO things VALUES (10)')
    await query('INSERT INTO things VALUES (?)', [attempts + 20])
  })

  expect(attempts).toBe(2)
  expect(await ids()).toEqual([2, 10, 22])
})

test('a large result has all rows in order, and the event loop goes on between its parts', async () => {
  await database.query(`INSERT INTO things ${numbers(20_000)}`)
  let turns = 0
  const timer = setInterval(() => turns++, 0)

  const all = await ids()

  clearInterval(timer)
  expect(all).toEqual(Array.from({ length: 20_000 }, (_, index) => index + 1))
  expect(turns).toBeGreaterThan(1)
})

test('parallel queries of one transaction get their own results', async () => {
  const rows = await database.transaction(({ query }) =>
    Promise.all([1, 2, 3].map((n) => query(`SELECT ${n} AS n`))),
  )

  expect(rows).toEqual([[{ n: 1 }], [{ n: 2 }], [{ n: 3 }]])
})

test('a value that is not one of SQL is an error of its query only', async () => {
  await expect(database.query('SELECT ?', [(() => {}) as never])).rejects.toThrow()

  expect(await database.query('SELECT 1 AS one')).toEqual([{ one: 1 }])
})

describe('close()', () => {
  test('finishes queued work, ends all threads, and may be called again', async () => {
    const ended = vi.fn()
    await ids()
    const added = add(1)
    const read = ids()
    for (const thread of threads) thread.on('exit', ended)

    await Promise.all([database.close(), database.close()])
    await database.close()

    await Promise.all([added, read])
    expect(ended.mock.calls.length).toBeGreaterThanOrEqual(2)
    for (const { threadId } of threads) expect(threadId).toBe(-1)
  })

  test('makes later queries fail with 503', async () => {
    await database.close()

    await expect(add(1)).rejects.toMatchObject(unavailable)
    await expect(ids()).rejects.toMatchObject(unavailable)
    await expect(database.transaction(async () => {})).rejects.toMatchObject(unavailable)
  })
})

describe('a process', () => {
  const run = (code: string) => {
    const open = new URL('../../dist/storage/open.js', import.meta.url).href
    const start = `const listeners = () => process.eventNames().map((name) => String(name) + process.listenerCount(name)).join()
      const before = listeners()
      const { openDatabase } = await import(${JSON.stringify(open)})
      const database = await openDatabase(${JSON.stringify(join(folder, `${++files}.db`))})\n`
    return promisify(execFile)(process.execPath, ['--input-type=module', '--eval', start + code], {
      timeout: 20_000,
    })
  }

  test('exits without closing its database', async () => {
    await run("await database.query('SELECT 1')")
  })

  test('waits for the result of a query, though nothing else keeps it running', async () => {
    const { stdout } = await run('console.log((await database.query(`SELECT 7 AS n`))[0].n)')

    expect(stdout.trim()).toBe('7')
  })

  test('gets no listeners', async () => {
    const { stdout } = await run('await database.query(`SELECT 1`); console.log(before === listeners())')

    expect(stdout.trim()).toBe('true')
  })
})
