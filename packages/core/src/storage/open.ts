/** Which database an app means. Nothing of one is loaded before it is asked for. */
import type { Database } from './database.ts'
import type { PostgresPool } from './postgres.ts'

/** `postgres://…`, the app's own `Pool` of `pg`, the path of an SQLite file, or `:memory:`. */
export type DatabaseLocation = string | PostgresPool

export async function openDatabase(where: DatabaseLocation): Promise<Database> {
  if (typeof where !== 'string' || /^postgres(ql)?:\/\//.test(where)) {
    const { openPostgres } = await import('./postgres.ts')
    return openPostgres(where)
  }
  const { openSqlite } = await import('./sqlite.ts')
  return openSqlite(where)
}
