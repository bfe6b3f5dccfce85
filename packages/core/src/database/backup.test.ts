import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import { hasProc } from '../../../../test/support/processes.ts'
import type { Database } from '../storage/database.ts'
import { openDatabase } from '../storage/open.ts'
import { backupDatabase } from './backup.ts'

const root = emptyFolder()
let count = 0
let source: string
let target: string
let database: Database

beforeEach(async () => {
  const folder = join(root, `${++count}`)
  source = join(folder, 'modelmount.db')
  target = join(folder, 'backup.db')
  database = await openDatabase(source)
  await database.query('CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)')
  await database.query("INSERT INTO notes (text) VALUES ('first')")
  return () => database.close()
})

async function withCopy<Result>(path: string, work: (copy: Database) => Promise<Result>): Promise<Result> {
  const copy = await openDatabase(path)
  try {
    return await work(copy)
  } finally {
    await copy.close()
  }
}

const notesIn = (path: string) =>
  withCopy(path, async (copy) =>
    (await copy.query<{ text: string }>('SELECT text FROM notes ORDER BY id')).map(({ text }) => text),
  )

const partials = () => readdirSync(dirname(target)).filter((name) => name.endsWith('.partial'))

test('copies committed rows into one file that only its owner can read', async () => {
  expect(existsSync(`${source}-wal`)).toBe(true)

  await backupDatabase(source, target)
  await database.query("INSERT INTO notes (text) VALUES ('later')")

  expect((statSync(target).mode & 0o777).toString(8)).toBe('600')
  expect(readdirSync(dirname(target)).filter((name) => name.startsWith('backup'))).toEqual(['backup.db'])
  expect(await notesIn(target)).toEqual(['first'])
})

test('each backup is whole while another process writes', async () => {
  const written = await startWriter()
  for (let index = 0; index < 10; index++) {
    await written()
    await backupDatabase(source, `${target}-${index}`)
  }

  const values = new Set<number>()
  for (let index = 0; index < 10; index++)
    await withCopy(`${target}-${index}`, async (copy) => {
      expect(await copy.query('PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
      // Each transaction of the writer sets all rows of both tables to the same number.
      const numbers = await copy.query<{ n: number }>('SELECT n FROM one UNION SELECT n FROM two')
      expect(numbers).toHaveLength(1)
      for (const { n } of numbers) values.add(n)
    })
  expect(values.size).toBe(10)
})

/** Starts a process that writes transactions. The result waits until it has committed another one. */
async function startWriter(): Promise<() => Promise<unknown>> {
  const module = JSON.stringify(new URL('../../dist/storage/open.js', import.meta.url).href)
  const code = `
    const { openDatabase } = await import(${module})
    const database = await openDatabase(${JSON.stringify(source)})
    for (const name of ['one', 'two']) {
      await database.query('CREATE TABLE ' + name + ' (n INTEGER, text TEXT)')
      for (let row = 0; row < 100; row++)
        await database.query('INSERT INTO ' + name + ' VALUES (0, ?)', ['x'.repeat(2_000)])
    }
    for (;;) {
      await database.transaction(async ({ query }) => {
        for (const name of ['one', 'two']) await query('UPDATE ' + name + ' SET n = n + 1')
      })
      process.stdout.write('written\\n')
    }`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await once(child, 'close')
  })
  const lines = createInterface({ input: child.stdout })
  return () => once(lines, 'line')
}

test('does not replace a file unless `overwrite` is set', async () => {
  writeFileSync(target, 'precious')

  await expect(backupDatabase(source, target)).rejects.toThrow(
    `${target} exists. Name another file, or allow it to be replaced: \`overwrite\`.`,
  )
  expect(readFileSync(target, 'utf8')).toBe('precious')
  await backupDatabase(source, target, { overwrite: true })

  expect(await notesIn(target)).toEqual(['first'])
})

test('of two backups to one file at the same time, one is rejected', async () => {
  const outcomes = await Promise.allSettled([backupDatabase(source, target), backupDatabase(source, target)])

  expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
  expect(await notesIn(target)).toEqual(['first'])
  expect(partials()).toEqual([])
})

test('a failed backup keeps the previous one, and leaves no part of a file', async () => {
  await backupDatabase(source, target)
  const damaged = join(dirname(target), 'damaged.db')
  writeFileSync(damaged, 'no database '.repeat(1_000))

  await expect(backupDatabase(damaged, target, { overwrite: true })).rejects.toThrow('not a database')

  expect(await notesIn(target)).toEqual(['first'])
  expect(partials()).toEqual([])
})

test.each(['modelmount.db', 'modelmount.db-wal', 'link.db'])(
  'never replaces the database itself: %s',
  async (name) => {
    symlinkSync(source, join(dirname(source), 'link.db'))

    await expect(backupDatabase(source, join(dirname(source), name), { overwrite: true })).rejects.toThrow(
      'belongs to the database that is backed up',
    )

    expect(await notesIn(source)).toEqual(['first'])
  },
)

test('never replaces another database in use', async () => {
  const other = await openDatabase(target)
  onTestFinished(() => other.close())
  await other.query('CREATE TABLE other (id INTEGER)')

  await expect(backupDatabase(source, target, { overwrite: true })).rejects.toThrow('is a database in use')
})

test('rejects a database that does not exist, and creates none', async () => {
  const missing = join(dirname(source), 'missing.db')

  await expect(backupDatabase(missing, target)).rejects.toThrow(`No database found at ${missing}.`)
  await expect(backupDatabase(':memory:', target)).rejects.toThrow(TypeError)

  expect([existsSync(missing), existsSync(target)]).toEqual([false, false])
})

test('names pg_dump for PostgreSQL, without the password of the URL', async () => {
  const failed = await backupDatabase('postgres://me:secret@localhost/app', target).catch((error) => error)

  expect(failed.message).toContain('pg_dump --format=custom')
  expect(failed.message).not.toContain('secret')
})

test.runIf(hasProc)('a backup in the process of the app keeps the locks of the app', async () => {
  const locks = locksOf(source)

  await backupDatabase(source, target)

  // Without this lock, another process that closes the database takes itself for the last one. It deletes the log,
  // and the app loses what it writes afterwards.
  expect(locks).toHaveLength(1)
  expect(locksOf(source)).toEqual(locks)
})

/** Locks of this process on a file, without their number in the list of all locks. */
const locksOf = (path: string): readonly string[] =>
  readFileSync('/proc/locks', 'utf8')
    .split('\n')
    .filter((line) => line.includes(` ${process.pid} `) && line.includes(`:${statSync(path).ino} `))
    .map((line) => line.replace(/^\d+: /, ''))
