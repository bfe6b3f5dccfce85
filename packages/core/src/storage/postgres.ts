/** PostgreSQL through `pg`: of ours by a URL, or the pool that the app has. */
import { again } from './again.ts'
import {
  checkCount,
  type Database,
  type Queries,
  replaceParameters,
  type SqlValue,
  type TransactionOptions,
  toExact,
} from './database.ts'

/** What is asked of a `Pool` of `pg`. */
export interface PostgresPool extends PostgresQueries {
  connect(): Promise<PostgresClient>
  end(): Promise<void>
}
interface PostgresClient extends PostgresQueries {
  on(event: 'error', listener: () => void): unknown
  off(event: 'error', listener: () => void): unknown
  release(error?: Error): void
}
interface PostgresQueries {
  query(config: PostgresQuery): Promise<{ readonly rows: readonly object[] }>
}
interface PostgresQuery {
  readonly text: string
  readonly values: SqlValue[]
  readonly types: { getTypeParser(typeId: number): (text: string) => unknown }
}

/** @param where `postgres://…`, or a pool, which stays open when the database is closed */
export async function openPostgres(where: string | PostgresPool): Promise<Database> {
  if (typeof where !== 'string') return new Postgres(where, false)
  const { Pool } = await load()
  // An app that is done ends; one whose database is away hears of it.
  const pool = new Pool({
    connectionString: where,
    allowExitOnIdle: true,
    connectionTimeoutMillis: 10_000,
  })
  // A connection that breaks while nobody uses it is replaced by the pool; unheard, it would end the process.
  pool.on('error', ignore)
  const database = new Postgres(pool, true)
  await database.query('SELECT 1')
  return database
}

class Postgres implements Database {
  // Not `now()`, which is when the transaction began: it may have waited since.
  readonly clock = 'CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)'
  readonly #pool: PostgresPool
  readonly #isOwn: boolean

  constructor(pool: PostgresPool, isOwn: boolean) {
    this.#pool = pool
    this.#isOwn = isOwn
  }

  query<Row extends object>(sql: string, parameters?: readonly SqlValue[]): Promise<readonly Row[]> {
    return again(() => run<Row>(this.#pool, sql, parameters), isCollision)
  }

  transaction<Result>(
    work: (queries: Queries) => Promise<Result>,
    options: TransactionOptions = {},
  ): Promise<Result> {
    return again(() => this.#transaction(work, options), isCollision)
  }

  async close(): Promise<void> {
    if (this.#isOwn) await this.#pool.end()
  }

  async #transaction<Result>(
    work: (queries: Queries) => Promise<Result>,
    { alone = false }: TransactionOptions,
  ): Promise<Result> {
    const client = await this.#pool.connect()
    let broken: Error | undefined
    // The pool listens only to connections that it has.
    client.on('error', ignore)
    let isOver = false
    try {
      await run(client, 'BEGIN ISOLATION LEVEL READ COMMITTED')
      if (alone) await run(client, 'SELECT pg_advisory_xact_lock(?)', [lockId])
      const result = await work({
        query: async (sql, parameters) => {
          if (isOver) throw new Error('The transaction is over.')
          return run(client, sql, parameters)
        },
      })
      await run(client, 'COMMIT')
      return result
    } catch (error) {
      await run(client, 'ROLLBACK').catch((cause: Error) => {
        broken = cause
      })
      throw error
    } finally {
      isOver = true
      client.off('error', ignore)
      client.release(broken)
    }
  }
}

const ignore = (): void => {}

/** Of all who share the database only we may have it: 'modelmnt' as a number. */
const lockId = Buffer.from('modelmnt').readBigInt64BE()

async function run<Row extends object>(
  client: PostgresQueries,
  sql: string,
  parameters: readonly SqlValue[] = [],
): Promise<readonly Row[]> {
  let count = 0
  const text = replaceParameters(sql, () => `$${++count}`)
  checkCount(sql, count, parameters.length)
  const { rows } = await client.query({ text, values: [...parameters], types })
  return rows as readonly Row[]
}

/** By the number of the type: `pg_type.dat` of PostgreSQL. */
const types = {
  getTypeParser: (typeId: number): ((text: string) => SqlValue) => parsers[typeId] ?? ((text) => text),
}

const toInteger = (text: string): SqlValue => toExact(BigInt(text))
const parsers: Readonly<Record<number, (text: string) => SqlValue>> = {
  16: (bool) => (bool === 't' ? 1 : 0),
  17: (bytea) => Buffer.from(bytea.slice('\\x'.length), 'hex'),
  20: toInteger, // int8
  21: Number, // int2
  23: Number, // int4
  700: Number, // float4
  701: Number, // float8
  1700: (numeric) => (/^-?\d+$/.test(numeric) ? toInteger(numeric) : Number(numeric)), // sums of int8
}

async function load(): Promise<typeof import('pg')> {
  try {
    const { default: pg } = await import('pg')
    return pg as unknown as typeof import('pg')
  } catch (cause) {
    throw new Error('PostgreSQL needs the package pg. Install it with: npm install pg', { cause })
  }
}

/** `serialization_failure` and `deadlock_detected`: nothing has happened. */
const isCollision = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === '40001' || error.code === '40P01')
