import { reasonOf } from '../storage/database.ts'
import { readAppliedSteps, versionOf } from '../storage/migrations.ts'
import { type DatabaseLocation, isPostgres, openDatabase } from '../storage/open.ts'
import { expectExisting } from './expect-existing.ts'
import { optionalOwners, schema } from './tables.ts'

/**
 * Rejects if `createLlm()` would upgrade the database. A server of an older version could not start again then.
 *
 * @param location the option `database` of `createLlm()`
 */
export async function expectCurrentSchema(location: DatabaseLocation): Promise<void> {
  if (!isPostgres(location)) expectExisting(location)
  const database = await openDatabase(location)
  try {
    const steps = await readAppliedSteps(database)
    for (const [owner, { length }] of Object.entries(schema)) {
      const version = versionOf(steps, owner)
      if (version < length && !(version === 0 && optionalOwners.has(owner)))
        throw new Error(
          `The database is too old: its ${owner} tables have schema version ${version}, and this version of ` +
            `Modelmount needs ${length}. This command only reads, so it does not upgrade them. Start the server ` +
            'with this version first, or use the version of the server.',
        )
    }
  } catch (error) {
    throw reasonOf(error)
  } finally {
    await database.close()
  }
}
