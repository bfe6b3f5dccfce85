/** PostgreSQL through `pg`, either with a new pool for a URL or with the pool of the host app. */

import {
  checkParameterCount,
  type Database,
  databaseUnavailable,
  type Queries,
  type QueryOptions,
  reasonOf,
  replaceParameters,
  type SqlValue,
  type TransactionOptions,
  toExact,
  UncertainOutcome,
} from './database.ts'
import { retryOnConflict } from './retry-on-conflict.ts'
import { SlowQueries } from './slow-queries.ts'

/** The methods of `pg`'s `Pool` that this file uses. */
export interface PostgresPool {
  /** Takes a connection out of the pool. It must be released. */
  connect(): Promise<PostgresClient>
  /** Closes all connections. */
  end(): Promise<void>
}
interface PostgresClient {
  query(config: PostgresQuery): Promise<{ readonly rows: readonly object[] }>
  on(event: 'error', listener: (error: Error) => void): unknown
  off(event: 'error', listener: (error: Error) => void): unknown
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
  // A server that shuts down may end a connection in the same packet that opens it, before `#withConnection` listens.
  pool.on('connect', (client) => client.on('error', ignore))
  const database = new Postgres(pool, { isOwned: true, responseTimeoutMs })
  try {
    await database.query('SELECT 1')
    return database
  } catch (error) {
    await pool.end()
    // The host app gets the reason why its setting does not work.
    const cause = reasonOf(error)
    throw cause instanceof ConnectionError ? cause.cause : cause
  }
}

class Postgres implements Database {
  // Not `now()`, because it returns the start of the transaction.
  readonly clock = 'CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)'
  readonly skipLocked = 'FOR UPDATE SKIP LOCKED'
  readonly #pool: PostgresPool
  readonly #isOwned: boolean
  readonly #responseTimeoutMs: number
  readonly #slowQueries = new SlowQueries()
  #closing: Promise<void> | undefined

  constructor(
    pool: PostgresPool,
    { isOwned, responseTimeoutMs }: { isOwned: boolean; responseTimeoutMs: number },
  ) {
    this.#pool = pool
    this.#isOwned = isOwned
    this.#responseTimeoutMs = responseTimeoutMs
  }

  query<Row extends object>(
    sql: string,
    parameters?: readonly SqlValue[],
    { isSlow = false }: QueryOptions = {},
  ): Promise<readonly Row[]> {
    // In a transaction, because the server then cancels a statement that takes too long.
    if (isSlow)
      return this.#slowQueries.run(() =>
        this.#retry(() => this.#transaction(({ query }) => query<Row>(sql, parameters), { isSlow })),
      )
    // A statement that writes may wait for a lock, so it needs the time limits of a transaction.
    if (!isSelect.test(sql)) return this.transaction(({ query }) => query<Row>(sql, parameters))
    return this.#retry(() =>
      this.#withConnection(this.#responseTimeoutMs, (connection) => connection.run<Row>(sql, parameters)),
    )
  }

  transaction<Result>(
    work: (queries: Queries) => Promise<Result>,
    options: TransactionOptions = {},
  ): Promise<Result> {
    return this.#retry(() => this.#transaction(work, options))
  }

  async close(): Promise<void> {
    if (this.#isOwned) this.#closing ??= this.#pool.end()
    await this.#closing
  }

  async #retry<Result>(attempt: () => Promise<Result>): Promise<Result> {
    try {
      return await retryOnConflict(attempt, isConflict)
    } catch (error) {
      throw isUnavailable(error) ? databaseUnavailable(error) : error
    }
  }

  #transaction<Result>(
    work: (queries: Queries) => Promise<Result>,
    { exclusive: isExclusive = false, isSlow = false }: TransactionOptions & QueryOptions,
  ): Promise<Result> {
    // An exclusive transaction may wait for others, and may create an index of a large table.
    const factor = isExclusive ? 60 : isSlow ? 6 : 1
    const responseTimeoutMs = factor * this.#responseTimeoutMs
    return this.#withConnection(responseTimeoutMs, async (connection) => {
      let isOver = false
      try {
        await connection.run(
          begin({
            statementMs: 0.9 * responseTimeoutMs,
            lockMs: isExclusive ? 0.9 * responseTimeoutMs : 0.5 * this.#responseTimeoutMs,
            idleMs: 0.4 * this.#responseTimeoutMs,
          }),
        )
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
    const client = await withTimeout(connecting, this.#responseTimeoutMs).catch((cause: Error) => {
      connecting.then((late) => late.release(), ignore)
      throw new ConnectionError(cause)
    })
    const connection = new PostgresConnection(client, responseTimeoutMs)
    // The listener of the pool only gets the errors of idle connections.
    const onError = (error: Error) => {
      connection.failure ??= error
    }
    client.on('error', onError)
    try {
      return await work(connection)
    } finally {
      client.off('error', onError)
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
    const { rows = [] } = await withTimeout(response, this.#responseTimeoutMs).catch((error: Error) => {
      if (sqlStateOf(error) !== undefined) throw error
      // The server may have ended the connection before. Then `failure` is its reason.
      this.failure ??= error
      throw sqlStateOf(this.failure) === undefined ? new ConnectionError(this.failure) : this.failure
    })
    return rows as readonly Row[]
  }
}

/** PostgreSQL cannot be reached, or does not answer. */
class ConnectionError extends Error {
  override readonly name = 'ConnectionError'

  constructor(cause: Error & { readonly code?: unknown }) {
    // An `AggregateError` of several addresses has a code and no message.
    super(`The connection to PostgreSQL failed: ${cause.message || cause.code}`, { cause })
  }
}

async function withTimeout<Result>(response: Promise<Result>, limitMs: number): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_resolve, reject) => {
    const giveUp = () => reject(new Error(`PostgreSQL has not answered within ${limitMs} ms.`))
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
  const isRejected = cause instanceof Error && 'severity' in cause && cause.severity === 'ERROR'
  if (isRejected || sqlStateOf(cause) === idleInTransaction) throw cause
  throw new UncertainOutcome('PostgreSQL did not confirm the commit of a transaction.', { cause })
}

/**
 * Begins a transaction with time limits, so that an app that is stopped in a transaction, or a person who keeps
 * one open, does not block other calls for long. The limits are of the transaction, not of the connection: the
 * connection may belong to the pool of the host app, or to PgBouncer.
 *
 * @param limits in milliseconds: `idleMs` between two statements
 */
const begin = (limits: {
  readonly statementMs: number
  readonly lockMs: number
  readonly idleMs: number
}): string => {
  const [statementMs, lockMs, idleMs] = [limits.statementMs, limits.lockMs, limits.idleMs].map(Math.round)
  return `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = ${statementMs};
    SET LOCAL lock_timeout = ${lockMs}; SET LOCAL idle_in_transaction_session_timeout = ${idleMs}`
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

/** The five characters of PostgreSQL's error code. Undefined for errors of the connection. */
const sqlStateOf = (error: unknown): string | undefined =>
  error instanceof Error && 'severity' in error && 'code' in error ? String(error.code) : undefined

const idleInTransaction = '25P03'

/**
 * `serialization_failure`, `deadlock_detected` and `idle_in_transaction_session_timeout`. In all cases, the
 * transaction has changed nothing.
 */
const conflicts: ReadonlySet<string | undefined> = new Set(['40001', '40P01', idleInTransaction])
const isConflict = (error: unknown): boolean => conflicts.has(sqlStateOf(error))

/**
 * Conditions of the server that no statement of ours causes, as the beginning of their codes: connection
 * exceptions, invalid authorization, a missing database, a read-only server, insufficient resources, locks and
 * shutdowns, statements that take too long, and system errors.
 */
const unavailable = /^(08|28|3D|25006|25P03|40001|40P01|53|55P03|57|58)/
const isUnavailable = (error: unknown): boolean =>
  error instanceof ConnectionError || unavailable.test(sqlStateOf(error) ?? '')

const isSelect = /^\s*SELECT\b/i
