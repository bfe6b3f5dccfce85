import { reasonOf } from '../storage/database.ts'
import { type DatabaseLocation, isPostgres, openDatabase } from '../storage/open.ts'
import { expectExisting } from './expect-existing.ts'

/**
 * Rejects if no transaction that writes can begin, as while another process locks the file of SQLite for more
 * than five seconds. Writes nothing.
 *
 * @param location the option `database` of `createLlm()`
 */
export async function expectWritable(location: DatabaseLocation): Promise<void> {
  if (!isPostgres(location)) expectExisting(location)
  const database = await openDatabase(location)
  try {
    await database.transaction(({ query }) => query('SELECT 1'))
  } catch (error) {
    throw reasonOf(error)
  } finally {
    await database.close()
  }
}
