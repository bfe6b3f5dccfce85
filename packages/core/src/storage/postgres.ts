/** PostgreSQL through `pg`, either with a new pool for a URL or with the pool of the host app. */

import {
  checkParameterCount,
  type Database,
  type Queries,
  replaceParameters,
  type SqlValue,
  type TransactionOptions,
  toExact,
  UncertainOutcome,
} from './database.ts'
import { retryOnConflict } from './retry-on-conflict.ts'

/** The methods of `pg`'s `Pool` that this file uses. */
export interface PostgresPool {
  connect(): Promise<PostgresClient>
  end(): Promise<void>
}
interface PostgresClient {
  query(config: PostgresQuery): Promise<{ readonly rows: readonly object[] }>
  on(event: 'error', listener: () => void): unknown
  off(event: 'error', listener: () => void): unknown
  release(error?: Error): void
}
interface PostgresQuery {
  readonly text: string
  readonly values: SqlValue[]
  readonly types: { getTypeParser(typeId: number): (text: string) => unknown }
}

/**
 * @param location `postgres://…`, or a pool, which `close` leaves open
 * @param responseTimeoutMs time limit of a statement, after which the database counts as unavailable
 */
export async function openPostgres(
  location: string | PostgresPool,
  responseTimeoutMs = 10_000,
): Promise<Database> {
  if (typeof location !== 'string') return new Postgres(location, { isOwned: false, responseTimeoutMs })
  const { Pool } = await loadPg()
  // `allowExitOnIdle` lets a finished app exit. The timeout detects an unreachable database.
  const pool = new Pool({
    connectionString: location,
    allowExitOnIdle: true,
    connectionTimeoutMillis: responseTimeoutMs,
    keepAlive: true,
  })
  // The pool replaces a broken idle connection. But without this listener, its error would end the process.
  pool.on('error', ignore)
  const database = new Postgres(pool, { isOwned: true, responseTimeoutMs })
  try {
    await database.query('SELECT 1')
    return database
  } catch (cause) {
    await pool.end()
    throw cause
  }
}

class Postgres implements Database {
  // Not `now()`, because it returns the start of the transaction.
  readonly clock = 'CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)'
  readonly #pool: PostgresPool
  readonly #isOwned: boolean
  readonly #responseTimeoutMs: number

  constructor(
    pool: PostgresPool,
    { isOwned, responseTimeoutMs }: { isOwned: boolean; responseTimeoutMs: number },
  ) {
    this.#pool = pool
    this.#isOwned = isOwned
    this.#responseTimeoutMs = responseTimeoutMs
  }

  query<Row extends object>(sql: string, parameters?: readonly SqlValue[]): Promise<readonly Row[]> {
    return retryOnConflict(
      () =>
        this.#withConnection(this.#responseTimeoutMs, (connection) => connection.run<Row>(sql, parameters)),
      isConflict,
    )
  }

  transaction<Result>(
    work: (queries: Queries) => Promise<Result>,
    options: TransactionOptions = {},
  ): Promise<Result> {
    return retryOnConflict(() => this.#transaction(work, options), isConflict)
  }

  async close(): Promise<void> {
    if (this.#isOwned) await this.#pool.end()
  }

  #transaction<Result>(
    work: (queries: Queries) => Promise<Result>,
    { exclusive: isExclusive = false }: TransactionOptions,
  ): Promise<Result> {
    // An exclusive transaction may wait for others, so its statements may take longer.
    const responseTimeoutMs = isExclusive ? 6 * this.#responseTimeoutMs : this.#responseTimeoutMs
    return this.#withConnection(responseTimeoutMs, async (connection) => {
      let isOver = false
      try {
        await connection.run('BEGIN ISOLATION LEVEL READ COMMITTED')
        if (isExclusive) await connection.run('SELECT pg_advisory_xact_lock(?)', [advisoryLockId])
        const result = await work({
          query: async (sql, parameters) => {
            if (isOver) throw new Error('The transaction is over.')
            return connection.run(sql, parameters)
          },
        })
        await connection.run('COMMIT').catch(throwCommitError)
        return result
      } catch (error) {
        if (!connection.failure)
          await connection.run('ROLLBACK').catch((cause: Error) => {
            connection.failure = cause
          })
        throw error
      } finally {
        isOver = true
      }
    })
  }

  /** Uses one connection, and returns it to the pool. */
  async #withConnection<Result>(
    responseTimeoutMs: number,
    work: (connection: PostgresConnection) => Promise<Result>,
  ): Promise<Result> {
    const connecting = this.#pool.connect()
    const client = await withTimeout(connecting, this.#responseTimeoutMs).catch((error: unknown) => {
      connecting.then((late) => late.release(), ignore)
      throw error
    })
    const connection = new PostgresConnection(client, responseTimeoutMs)
    // The listener of the pool only gets the errors of idle connections.
    client.on('error', ignore)
    try {
      return await work(connection)
    } finally {
      client.off('error', ignore)
      client.release(connection.failure)
    }
  }
}

class PostgresConnection {
  /** The reason why the connection must not be reused. Undefined while the connection may be reused. */
  failure: Error | undefined
  readonly #client: PostgresClient
  readonly #responseTimeoutMs: number

  constructor(client: PostgresClient, responseTimeoutMs: number) {
    this.#client = client
    this.#responseTimeoutMs = responseTimeoutMs
  }

  async run<Row extends object>(sql: string, parameters: readonly SqlValue[] = []): Promise<readonly Row[]> {
    let count = 0
    const text = replaceParameters(sql, () => `$${++count}`)
    checkParameterCount(sql, count, parameters.length)
    const response = this.#client.query({ text, values: [...parameters], types })
    const { rows } = await withTimeout(response, this.#responseTimeoutMs).catch((error: unknown) => {
      if (error instanceof NoResponseError) this.failure = error
      throw error
    })
    return rows as readonly Row[]
  }
}

class NoResponseError extends Error {
  override readonly name = 'NoAnswer'
}

async function withTimeout<Result>(response: Promise<Result>, limitMs: number): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_resolve, reject) => {
    const giveUp = () => reject(new NoResponseError(`PostgreSQL has not answered within ${limitMs} ms.`))
    timer = setTimeout(giveUp, limitMs)
  })
  try {
    return await Promise.race([response, timeout])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Rethrows the error if the server rejected the commit. After any other error, the commit may have succeeded.
 */
function throwCommitError(cause: unknown): never {
  if (cause instanceof Error && 'severity' in cause && cause.severity === 'ERROR') throw cause
  throw new UncertainOutcome('PostgreSQL did not confirm the commit of a transaction.', { cause })
}

const ignore = (): void => {}

/** The text 'modelmnt' as a number. Other programs are unlikely to lock the same number. */
const advisoryLockId = Buffer.from('modelmnt').readBigInt64BE()

/** Parsers by the type numbers of PostgreSQL's `pg_type.dat`. */
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

async function loadPg(): Promise<typeof import('pg')> {
  try {
    const { default: pg } = await import('pg')
    return pg as unknown as typeof import('pg')
  } catch (cause) {
    throw new Error('PostgreSQL needs the package pg. Install it with: npm install pg', { cause })
  }
}

/**
 * Whether the code is `serialization_failure` or `deadlock_detected`. In both cases, the transaction has
 * changed nothing.
 */
const isConflict = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === '40001' || error.code === '40P01')
