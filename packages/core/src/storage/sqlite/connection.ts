/** One connection to SQLite, through `DatabaseSync` of Node, or of `@photostructure/sqlite` if Node lacks it. */
import { pathToFileURL } from 'node:url'
import { LRUCache } from 'lru-cache'
import { checkParameterCount, replaceParameters, type SqlValue, toExact } from '../database.ts'
import { retryOnConflict } from '../retry-on-conflict.ts'
import { isBusy } from './failures.ts'

/**
 * @param path an existing file, or `:memory:`
 * @param checkFile throws if the path has another file than expected. Is called after the database file is opened,
 * and before its `-wal` file is: SQLite would apply the `-wal` file of another database, and delete it at the end.
 */
export async function connect(
  path: string,
  isReader: boolean,
  checkFile: () => void = () => {},
): Promise<Connection> {
  const connection = new Connection(openExisting(await loadSqlite(), path))
  try {
    checkFile()
    // The app's thread repeats statements that fail with a lock, so a thread waits only 10 ms for it.
    connection.run('PRAGMA busy_timeout = 10')
    const settings = isReader
      ? ['query_only = ON']
      : ['journal_mode = WAL', 'synchronous = NORMAL', 'foreign_keys = ON']
    for (const setting of settings) await retryOnConflict(() => connection.run(`PRAGMA ${setting}`), isBusy)
    // Opens the `-wal` and `-shm` files.
    await retryOnConflict(() => connection.run('SELECT count(*) FROM sqlite_schema'), isBusy)
    return connection
  } catch (cause) {
    connection.close()
    throw cause
  }
}

/** Opens the file without creating it, even if it is deleted at this moment. */
function openExisting({ DatabaseSync }: SqliteModule, path: string): SqliteConnection {
  if (path === ':memory:') return new DatabaseSync(path)
  const url = pathToFileURL(path)
  url.search = 'mode=rw'
  try {
    return new DatabaseSync(url)
  } catch (cause) {
    // Node before 22.15 takes no URLs.
    if ((cause as NodeJS.ErrnoException).code === 'ERR_INVALID_ARG_TYPE') return new DatabaseSync(path)
    throw cause
  }
}

/**
 * Number of cached statements. The cache is bounded, because a statement with a list of values needs one
 * entry for each length of the list.
 */
const maxStatements = 200

export class Connection {
  // Keeps the connection from being garbage-collected before its statements. Otherwise the next use of a
  // statement would crash the process.
  readonly #connection: SqliteConnection
  readonly #statements = new LRUCache<string, PreparedStatement>({ max: maxStatements })

  constructor(connection: SqliteConnection) {
    this.#connection = connection
  }

  run(sql: string, values: readonly SqlValue[] = []): readonly SqlRow[] {
    const { statement, parameters } = this.#prepareStatement(sql)
    checkParameterCount(sql, parameters, values.length)
    return statement.all(...values.map(toParameter)).map((row) => mapValues(row, fromColumn))
  }

  /** False after an error such as a full disk, after which SQLite has rolled back. */
  get isTransaction(): boolean {
    return this.#connection.isTransaction
  }

  rollback(): void {
    if (this.isTransaction) this.run('ROLLBACK')
  }

  close(): void {
    this.#statements.clear()
    this.#connection.close()
  }

  #prepareStatement(sql: string): PreparedStatement {
    const cached = this.#statements.get(sql)
    if (cached) return cached
    let parameterCount = 0
    replaceParameters(sql, () => `?${++parameterCount}`)
    const statement = this.#connection.prepare(sql)
    statement.setReadBigInts(true)
    const prepared = { statement, parameters: parameterCount }
    this.#statements.set(sql, prepared)
    return prepared
  }
}

export type SqlRow = Readonly<Record<string, SqlValue>>

interface SqliteConnection {
  readonly isTransaction: boolean
  prepare(sql: string): SqliteStatement
  close(): void
}
interface PreparedStatement {
  readonly statement: SqliteStatement
  readonly parameters: number
}
interface SqliteStatement {
  setReadBigInts(on: boolean): void
  all(...parameters: readonly SqlValue[]): readonly SqlRow[]
}
interface SqliteModule {
  readonly DatabaseSync: new (path: string | URL) => SqliteConnection
}

async function loadSqlite(): Promise<SqliteModule> {
  // `unknown`, because `@types/node` of the oldest supported Node lacks the module.
  const own: unknown = process.getBuiltinModule?.('node:sqlite')
  if (own) return own as SqliteModule
  try {
    return (await import('@photostructure/sqlite')) as SqliteModule
  } catch (cause) {
    throw new Error(
      'This version of Node has no built-in SQLite. Install it with: npm install @photostructure/sqlite@1',
      { cause },
    )
  }
}

/**
 * Converts integers to bigints. The driver binds numbers as REAL, so a division of integers would return a
 * fraction.
 */
const toParameter = (value: SqlValue): SqlValue =>
  typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : value

const fromColumn = (value: SqlValue): SqlValue => (typeof value === 'bigint' ? toExact(value) : value)

const mapValues = (row: SqlRow, map: (value: SqlValue) => SqlValue): SqlRow =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, map(value)]))
