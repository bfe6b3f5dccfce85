/** Opens the database that the option `database` names. A driver is loaded only if it is used. */
import type { Database } from './database.ts'
import type { PostgresPool } from './postgres.ts'
import type { DatabaseLog } from './sqlite.ts'

/** `postgres://…`, a `Pool` of `pg`, the path of an SQLite file, or `:memory:`. */
export type DatabaseLocation = string | PostgresPool

/** Whether the location is PostgreSQL. Otherwise, it is the path of an SQLite file, or `:memory:`. */
export const isPostgres = (location: DatabaseLocation): location is PostgresPool | `postgres${string}` =>
  typeof location !== 'string' || /^postgres(ql)?:\/\//.test(location)

/** @param log called when the files of an SQLite database are lost, replaced or back */
export async function openDatabase(location: DatabaseLocation, log?: DatabaseLog): Promise<Database> {
  if (isPostgres(location)) {
    const { openPostgres } = await import('./postgres.ts')
    return openPostgres(location)
  }
  const { openSqlite } = await import('./sqlite.ts')
  return openSqlite(location, log)
}
