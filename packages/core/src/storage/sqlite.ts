/** SQLite through `DatabaseSync` of Node, or of `@photostructure/sqlite` if this version of Node lacks it. */
import { closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { LRUCache } from 'lru-cache'
import {
  checkParameterCount,
  type Database,
  type Queries,
  replaceParameters,
  type SqlValue,
  toExact,
} from './database.ts'
import { retryOnConflict } from './retry-on-conflict.ts'

/** @param path a file on a local disk, which is created if it is missing, or `:memory:` */
export async function openSqlite(path: string): Promise<Database> {
  const { DatabaseSync } = await loadSqlite()
  if (path !== inMemory) createPrivateFile(resolve(path))
  const database = new Sqlite(new DatabaseSync(path))
  try {
    await database.configure()
    return database
  } catch (cause) {
    await database.close()
    throw cause
  }
}

const inMemory = ':memory:'
/**
 * Number of cached statements. The cache is bounded, because a statement with a list of values needs one
 * entry for each length of the list.
 */
const maxStatements = 200

class Sqlite implements Database {
  readonly clock = `CAST(round(unixepoch('subsec') * 1000) AS INTEGER)`
  // Keeps the connection from being garbage-collected before its statements. Otherwise the next use of a
  // statement would crash the process.
  readonly #connection: SqliteConnection
  readonly #statements = new LRUCache<string, PreparedStatement>({ max: maxStatements })
  #tail: Promise<unknown> = Promise.resolve()

  constructor(connection: SqliteConnection) {
    this.#connection = connection
  }

  async configure(): Promise<void> {
    // While SQLite waits for a lock, it blocks the event loop, so it waits only 10 ms. Then `retryOnConflict`
    // waits and repeats.
    this.#run('PRAGMA busy_timeout = 10')
    await retryOnConflict(() => this.#run('PRAGMA journal_mode = WAL'), isBusy)
    for (const setting of ['synchronous = NORMAL', 'foreign_keys = ON']) this.#run(`PRAGMA ${setting}`)
  }

  query<Row extends object>(sql: string, parameters: readonly SqlValue[] = []): Promise<readonly Row[]> {
    return this.#enqueue(() => retryOnConflict(() => this.#run<Row>(sql, parameters), isBusy))
  }

  transaction<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result> {
    return this.#enqueue(async () => {
      // Takes the write lock at the beginning. If a transaction reads first, it can no longer write once
      // another process has written.
      await retryOnConflict(() => this.#run('BEGIN IMMEDIATE'), isBusy)
      let isOver = false
      const queries: Queries = {
        query: async (sql, parameters = []) => {
          if (isOver) throw new Error('The transaction is over.')
          return this.#run(sql, parameters)
        },
      }
      try {
        const result = await work(queries)
        this.#run('COMMIT')
        return result
      } catch (error) {
        // After an error such as a full disk, SQLite may have rolled back already.
        if (this.#connection.isTransaction) this.#run('ROLLBACK')
        throw error
      } finally {
        isOver = true
      }
    })
  }

  close(): Promise<void> {
    return this.#enqueue(async () => {
      this.#statements.clear()
      this.#connection.close()
    })
  }

  #enqueue<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.#tail.then(work)
    this.#tail = result.catch(() => {})
    return result
  }

  #run<Row extends object>(sql: string, values: readonly SqlValue[] = []): readonly Row[] {
    const { statement, parameters } = this.#prepareStatement(sql)
    checkParameterCount(sql, parameters, values.length)
    return statement.all(...values.map(toParameter)).map((row) => mapValues(row, fromColumn) as Row)
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
  all(...parameters: readonly SqlValue[]): readonly Readonly<Record<string, SqlValue>>[]
}
interface SqliteModule {
  readonly DatabaseSync: new (path: string) => SqliteConnection
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
 * Creates a file that only its owner can read. SQLite creates its `-wal` and `-shm` files with the same mode.
 */
function createPrivateFile(path: string): void {
  mkdirSync(dirname(path), { recursive: true })
  closeSync(openSync(path, 'a', 0o600))
}

/**
 * Converts integers to bigints. The driver binds numbers as REAL, so a division of integers would return a
 * fraction.
 */
const toParameter = (value: SqlValue): SqlValue =>
  typeof value === 'number' && Number.isSafeInteger(value) ? BigInt(value) : value

const fromColumn = (value: SqlValue): SqlValue => (typeof value === 'bigint' ? toExact(value) : value)

const mapValues = (row: Readonly<Record<string, SqlValue>>, map: (value: SqlValue) => SqlValue) =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [name, map(value)]))

/**
 * Whether another connection holds the lock. Checks the message, because not every driver reports an error
 * number.
 */
const isBusy = (error: unknown): boolean => error instanceof Error && /\bis locked\b/.test(error.message)
