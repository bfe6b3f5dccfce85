/** Opens the database that the option `database` names. A driver is loaded only if it is used. */
import type { Database } from './database.ts'
import type { PostgresPool } from './postgres.ts'

/** `postgres://…`, a `Pool` of `pg`, the path of an SQLite file, or `:memory:`. */
export type DatabaseLocation = string | PostgresPool

export async function openDatabase(location: DatabaseLocation): Promise<Database> {
  if (typeof location !== 'string' || /^postgres(ql)?:\/\//.test(location)) {
    const { openPostgres } = await import('./postgres.ts')
    return openPostgres(location)
  }
  const { openSqlite } = await import('./sqlite.ts')
  return openSqlite(location)
}
