import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { beforeEach, describe, expect, test } from 'vitest'
import { databases } from '../../../../test/support/databases.ts'
import type { Database } from './database.ts'
import { type Migration, migrate, readAppliedSteps } from './migrations.ts'
import { openDatabase } from './open.ts'

const first: Migration = [
  'CREATE TABLE notes (id TEXT PRIMARY KEY)',
  "INSERT INTO notes (id) VALUES ('first')",
]
const second: Migration = ["INSERT INTO notes (id) VALUES ('second')"]

describe.each(databases())('in $name', ({ fresh }) => {
  let location: string
  let database: Database

  beforeEach(async () => {
    location = await fresh()
    database = await openDatabase(location)
    return () => database.close()
  })

  const notes = async () =>
    (await database.query<{ id: string }>('SELECT id FROM notes ORDER BY id')).map(({ id }) => id)

  const versions = async () => (await readAppliedSteps(database)).map(({ owner, number }) => [owner, number])

  test('each step runs once', async () => {
    await migrate(database, 'notes', [first])
    await migrate(database, 'notes', [first, second])
    await migrate(database, 'notes', [first, second])

    expect(await notes()).toEqual(['first', 'second'])
  })

  test('a failed step is rolled back, and earlier steps are kept', async () => {
    const failing: Migration = [...second, 'INSERT INTO nowhere (id) VALUES (1)']

    await expect(migrate(database, 'notes', [first, failing])).rejects.toThrow(/nowhere/)
    expect(await notes()).toEqual(['first'])
    await migrate(database, 'notes', [first, second])

    expect(await notes()).toEqual(['first', 'second'])
  })

  test('rejects a changed step', async () => {
    await migrate(database, 'notes', [first])

    await expect(migrate(database, 'notes', [[...first, ...second]])).rejects.toThrow(
      'Migration 1 of notes differs from the one applied to this database.',
    )
  })

  test('rejects a database with steps of a newer version, and names both versions', async () => {
    await migrate(database, 'notes', [first, second])

    await expect(migrate(database, 'notes', [first])).rejects.toThrow(
      'its notes tables have schema version 2, and this version of Modelmount supports versions up to 1.',
    )
    expect(await notes()).toEqual(['first', 'second'])
  })

  test('each owner numbers its own steps', async () => {
    await migrate(database, 'notes', [first, second])

    await migrate(database, 'others', [['CREATE TABLE others (id TEXT)']])

    expect(await versions()).toEqual([
      ['notes', 1],
      ['notes', 2],
      ['others', 1],
    ])
  })

  test('four processes at once run each step once', async () => {
    const module = (path: string) =>
      JSON.stringify(new URL(`../../dist/storage/${path}`, import.meta.url).href)
    const code = `
      const { openDatabase } = await import(${module('open.js')})
      const { migrate } = await import(${module('migrations.js')})
      const database = await openDatabase(${JSON.stringify(location)})
      await migrate(database, 'notes', ${JSON.stringify([first, second])})
      await database.close()`
    const run = () =>
      promisify(execFile)(process.execPath, ['--input-type=module', '--eval', code], { timeout: 20_000 })

    await Promise.all([run(), run(), run(), run()])

    expect(await notes()).toEqual(['first', 'second'])
  })
})
