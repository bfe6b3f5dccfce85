import { closeSync, existsSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { createLlm } from '@modelmount/core'
import { scriptedEngine } from '@modelmount/core/testing'
import { beforeEach, describe, expect, test } from 'vitest'
import { databases } from '../../../../test/support/databases.ts'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import type { Database } from '../storage/database.ts'
import { openDatabase } from '../storage/open.ts'
import { checkDatabase } from './check.ts'
import { optionalOwners, schema } from './tables.ts'

const models = emptyFolder()
const current = Object.entries(schema)
  .filter(([owner]) => !optionalOwners.has(owner))
  .map(([owner, { length }]) => ({ owner, version: length, supported: length }))

describe.each(databases())('in $name', ({ name, fresh }) => {
  let location: string
  let database: Database

  beforeEach(async () => {
    location = await fresh()
    const llm = await createLlm({ auth: 'keys', models, database: location, engine: scriptedEngine('word') })
    await llm.keys.create({ name: 'laptop' })
    await llm.close()
    database = await openDatabase(location)
    return () => database.close()
  })

  test('finds no problem in a new database', async () => {
    expect(await checkDatabase(location)).toEqual({
      kind: name === 'SQLite' ? 'sqlite' : 'postgres',
      schema: current,
      leases: { live: 0, expired: 0 },
      problems: [],
    })
  })

  test('reports an older schema, which is no problem', async () => {
    await database.query("DELETE FROM modelmount_migrations WHERE owner = 'usage' AND number = ?", [
      schema.usage?.length ?? 0,
    ])
    const usage = {
      owner: 'usage',
      version: (schema.usage?.length ?? 0) - 1,
      supported: schema.usage?.length,
    }

    const { schema: states, problems } = await checkDatabase(location)

    expect(states).toContainEqual(usage)
    expect(problems).toEqual([])
  })

  test('reports a newer schema, and tables of unknown names', async () => {
    await database.query(
      "INSERT INTO modelmount_migrations VALUES ('usage', 99, 'x', 0), ('tasks', 1, 'x', 0)",
    )

    const { schema: states, problems } = await checkDatabase(location)

    expect(states).toContainEqual({ owner: 'tasks', version: 1, supported: 0 })
    expect(problems).toEqual([
      expect.stringContaining('its usage tables have schema version 99'),
      expect.stringContaining('its tasks tables have schema version 1'),
    ])
  })

  test('reports a changed step, a missing table and a missing index', async () => {
    await database.query("UPDATE modelmount_migrations SET checksum = 'x' WHERE owner = 'limits'")
    await database.query('DROP TABLE modelmount_funds')
    await database.query('DROP INDEX modelmount_calls_at')

    expect((await checkDatabase(location)).problems).toEqual([
      'Version 1 of the limits tables differs from that of this version of Modelmount.',
      'The table modelmount_funds is missing.',
      'The index modelmount_calls_at is missing.',
      'The index modelmount_funds_caller is missing.',
    ])
  })

  test('reports rows that refer to missing keys', async () => {
    if (name === 'SQLite') await database.query('PRAGMA foreign_keys = OFF')
    await database.transaction(async ({ query }) => {
      if (name === 'PostgreSQL') await query("SET LOCAL session_replication_role = 'replica'")
      await query(
        "INSERT INTO modelmount_key_secrets VALUES ('a', 'key_none', 'x', NULL), ('b', 'key_none', 'x', NULL)",
      )
    })

    expect((await checkDatabase(location)).problems).toEqual([
      '2 rows of modelmount_key_secrets refer to missing rows of modelmount_keys (key_id to id).',
    ])
  })

  test('counts leases', async () => {
    const { clock } = database
    await database.query(
      `INSERT INTO modelmount_limit_leases VALUES ('a', 's', ${clock} + 9000), ('b', 's', ${clock} - 1)`,
    )
    await database.query(
      `INSERT INTO modelmount_funds (id, caller, at, nano_usd, expires_at) VALUES ('c', 'k', 0, 1, ${clock} - 1)`,
    )

    expect(await checkDatabase(location)).toMatchObject({ leases: { live: 1, expired: 2 }, problems: [] })
  })

  if (name === 'SQLite')
    test('reports damage that makes its own queries fail', async () => {
      const [table] = await database.query<{ rootpage: number }>(
        "SELECT rootpage FROM sqlite_schema WHERE name = 'modelmount_migrations'",
      )
      await database.close()
      const file = openSync(location, 'r+')
      writeSync(file, Buffer.alloc(4096, 0xff), 0, 4096, ((table?.rootpage ?? 0) - 1) * 4096)
      closeSync(file)

      expect((await checkDatabase(location)).problems).toContain(
        'The file is damaged: database disk image is malformed.',
      )
    })

  if (name === 'PostgreSQL')
    test('reports an index whose creation failed', async () => {
      await database.query(
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'modelmount_calls_at'::regclass",
      )

      expect((await checkDatabase(location)).problems).toEqual([
        'The index modelmount_calls_at is invalid. Run: REINDEX INDEX modelmount_calls_at',
      ])
    })

  if (name === 'SQLite')
    test('reports damaged pages', async () => {
      await database.transaction(async ({ query }) => {
        for (let index = 0; index < 200; index++)
          await query("INSERT INTO modelmount_limits VALUES (?, 'x', 0, 0, 0)", [
            'subject'.repeat(50) + index,
          ])
      })
      await database.query('PRAGMA wal_checkpoint(TRUNCATE)')
      await database.close()
      const bytes = readFileSync(location)
      bytes.fill(0xff, bytes.length - 20_000)
      writeFileSync(location, bytes)

      const { problems } = await checkDatabase(location)

      expect(problems.length).toBeGreaterThan(0)
      expect(problems[0]).toMatch(/^The file is damaged: /)
      database = await openDatabase(await fresh())
    })
})

test('reports a file that is no database, and an empty one', async () => {
  const folder = emptyFolder()
  const [text, empty] = [join(folder, 'text.db'), join(folder, 'empty.db')]
  writeFileSync(text, 'no database '.repeat(1_000))
  writeFileSync(empty, '')

  expect((await checkDatabase(text)).problems).toEqual(['The file is damaged: file is not a database.'])
  expect((await checkDatabase(empty)).problems).toEqual(['The database contains no tables of Modelmount.'])
})

test('rejects a database that does not exist, and creates none', async () => {
  const missing = join(emptyFolder(), 'missing.db')

  await expect(checkDatabase(missing)).rejects.toThrow(`No database found at ${missing}.`)
  expect(existsSync(missing)).toBe(false)
})
