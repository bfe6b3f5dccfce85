/**
 * A version of Modelmount opened a database whose tables a newer version had upgraded, and wrote rows that the
 * newer version did not expect. Now it is refused, in each way to open it. `packages/cli/src/db/db.test.ts` tests the
 * commands.
 */
import { createLlm, type Llm } from '@modelmount/core'
import { openReplicaTable } from '@modelmount/core/fleet'
import { createRateLimiter } from '@modelmount/core/limits'
import { scriptedEngine } from '@modelmount/core/testing'
import { describe, expect, test } from 'vitest'
import { schema } from '../../../packages/core/src/database/tables.ts'
import type { Database } from '../../../packages/core/src/storage/database.ts'
import { openDatabase } from '../../../packages/core/src/storage/open.ts'
import { databases } from '../../support/databases.ts'
import { emptyFolder } from '../../support/empty-folder.ts'

const models = emptyFolder()
const open = (database: string): Promise<Llm> =>
  createLlm({ auth: 'keys', models, database, engine: scriptedEngine('word') })

/** An app opens the tables of fleets only to use them. */
const openTablesOf = (owner: string, database: string): Promise<{ close(): Promise<void> }> =>
  owner === 'fleets' ? openReplicaTable({ database, fleet: 'gpu' }) : open(database)

async function withDatabase<Result>(
  location: string,
  work: (database: Database) => Promise<Result>,
): Promise<Result> {
  const database = await openDatabase(location)
  try {
    return await work(database)
  } finally {
    await database.close()
  }
}

const stepsOf = (location: string): Promise<readonly object[]> =>
  withDatabase(location, (database) =>
    database.query('SELECT owner, number, checksum FROM modelmount_migrations ORDER BY owner, number'),
  )

describe.each(databases())('in $name', ({ fresh }) => {
  test.each(Object.keys(schema))(
    'a newer schema of the %s tables is refused, and stays as it is',
    async (owner) => {
      const location = await fresh()
      await (await openTablesOf(owner, location)).close()
      const supported = schema[owner]?.length ?? 0
      await withDatabase(location, (database) =>
        database.query(
          `INSERT INTO modelmount_migrations VALUES ('${owner}', ${supported + 1}, 'of the future', 0)`,
        ),
      )
      const before = await stepsOf(location)

      await expect(openTablesOf(owner, location)).rejects.toThrow(
        `The database is too new: its ${owner} tables have schema version ${supported + 1}, and this version of ` +
          `Modelmount supports versions up to ${supported}. Start the version of Modelmount that upgraded the ` +
          'database, or a newer one, or restore a backup from before the upgrade.',
      )
      if (owner === 'limits')
        await expect(createRateLimiter({ database: location })).rejects.toThrow('too new')
      expect(await stepsOf(location)).toEqual(before)
    },
  )
})
