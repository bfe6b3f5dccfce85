import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { databases } from '../../../../test/support/databases.ts'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import { openDatabase } from '../../../core/src/storage/open.ts'
import { connect } from '../../../core/src/storage/sqlite/connection.ts'
import { checkDatabaseOf } from './database.ts'

const folder = emptyFolder()

async function createTables(location: string): Promise<string> {
  const llm = await createLlm({
    auth: 'keys',
    models: folder,
    database: location,
    engine: scriptedEngine('word'),
  })
  await llm.close()
  return location
}

const check = async (location: string | undefined) =>
  (await checkDatabaseOf(location)).map(({ status, message }) => `${status}: ${message}`)

async function change(location: string, sql: string): Promise<void> {
  const opened = await openDatabase(location)
  await opened.query(sql)
  await opened.close()
}

describe.each(databases())('in $name', ({ fresh }) => {
  test('a database with current tables is ok', async () => {
    expect(await check(await createTables(await fresh()))).toEqual([
      expect.stringMatching(/^ok: .* can be written, and its tables are up to date$/),
    ])
  })

  test('older tables are a warning with the command for a backup, and newer ones are a problem', async () => {
    const location = await createTables(await fresh())
    await change(location, "DELETE FROM modelmount_migrations WHERE owner = 'usage'")

    const [older] = await checkDatabaseOf(location)
    await change(location, "INSERT INTO modelmount_migrations VALUES ('usage', 99, 'of the future', 0)")
    const [newer] = await checkDatabaseOf(location)

    expect(older).toMatchObject({
      status: 'warning',
      fix: expect.stringMatching(/^(modelmount db backup|pg_dump) /),
    })
    expect(newer).toMatchObject({ status: 'problem', fix: 'npm install --global modelmount@latest' })
  })
})

test('a locked database is a problem with the command that names its users', async () => {
  const location = await createTables(join(folder, 'locked.db'))
  const other = await connect(location, false)
  onTestFinished(() => {
    other.rollback()
    other.close()
  })
  other.run('BEGIN IMMEDIATE')

  expect(await checkDatabaseOf(location)).toEqual([
    {
      check: 'database',
      status: 'problem',
      message: `Another process locks ${location}.`,
      fix: `fuser -v ${location}`,
    },
  ])
})

test('a damaged file is a problem', async () => {
  const location = join(folder, 'damaged.db')
  writeFileSync(location, 'no database '.repeat(1_000))

  expect(await check(location)).toEqual(['problem: The file is damaged: file is not a database.'])
})

test('PostgreSQL that does not run is a problem, and its password is not shown', async () => {
  const [finding] = await checkDatabaseOf('postgres://me:secret@127.0.0.1:1/app')

  expect(finding).toMatchObject({ status: 'problem', message: 'PostgreSQL cannot be used: ECONNREFUSED.' })
  expect(JSON.stringify(finding)).not.toContain('secret')
})

test('a database that does not exist yet is ok, and none is created', async () => {
  mkdirSync(join(folder, 'data'))
  const location = join(folder, 'data/modelmount.db')

  expect(await check(location)).toEqual([`ok: serve creates ${location}`])
  expect(await check(location)).toEqual([`ok: serve creates ${location}`])
  expect(await check(undefined)).toEqual(['ok: None is used'])
  expect(await check(':memory:')).toEqual([expect.stringContaining('warning: Keys and usage are lost')])
})
