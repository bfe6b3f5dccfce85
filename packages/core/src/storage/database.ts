/** The SQL interface. Statements use the common subset of SQLite and PostgreSQL. */
import { LlmError } from '../errors.ts'

export type SqlValue = string | number | bigint | Uint8Array | null

export interface Queries {
  /**
   * Runs one statement and returns its rows. Rejects with an `LlmError` `unavailable` if the database is locked,
   * missing or broken. Integers are numbers if that is exact, else bigints. Booleans
   * are 1 and 0.
   *
   * @param sql the statement, with `?` for each parameter
   */
  query<Row extends object>(
    sql: string,
    parameters?: readonly SqlValue[],
    options?: QueryOptions,
  ): Promise<readonly Row[]>
}

export interface QueryOptions {
  /**
   * Whether the statement only reads and may take seconds, such as a report. Two of these run at a time, so that
   * others never wait for them. Ignored in a transaction.
   *
   * @default false
   */
  readonly isSlow?: boolean
}

export interface Database extends Queries {
  /**
   * SQL expression for the current time by the database's clock, in milliseconds since 1970. Each evaluation
   * returns the time at that moment, not the start of the transaction.
   */
  readonly clock: string
  /**
   * SQL at the end of a `SELECT` that several transactions use to take different rows: it locks the rows, and leaves
   * out those that others have locked. Empty in SQLite, whose writes run one after the other. In PostgreSQL, a subquery
   * with it may run several times, except in `WITH … AS MATERIALIZED`.
   */
  readonly skipLocked: string
  /**
   * Runs `work` in a transaction, and rolls back when `work` throws. `work` must use only the queries that it
   * receives. `work` runs again after a conflict, such as with another transaction, or if it has run no query for
   * 4 s. With SQLite, the transaction begins with its first query. Its writes run one after the other. A query sees
   * all writes that were awaited before. Rejects with `UncertainOutcome` if the commit was not confirmed.
   */
  transaction<Result>(
    work: (queries: Queries) => Promise<Result>,
    options?: TransactionOptions,
  ): Promise<Result>
  close(): Promise<void>
}

export interface TransactionOptions {
  /** Excludes other exclusive transactions in all processes. @default false */
  readonly exclusive?: boolean
}

/** The database did not confirm a commit, which may have succeeded. */
export class UncertainOutcome extends LlmError {
  constructor(message: string, options?: ErrorOptions) {
    super('unavailable', message, { retryAfterMs }, options)
  }
}

/** The error of a query that fails because the database is locked, missing or broken. */
export const databaseUnavailable = (cause: unknown): LlmError =>
  new LlmError('unavailable', 'The database is unavailable. Try again in 1 s.', { retryAfterMs }, { cause })

const retryAfterMs = 1_000

/** Returns why the database is unavailable, which clients must not see. Other errors are returned as they are. */
export const reasonOf = (error: unknown): unknown =>
  LlmError.is(error) && error.code === 'unavailable' && error.cause ? error.cause : error

/** Replaces each `?` that is not in a string, quoted identifier or comment. */
export const replaceParameters = (sql: string, replace: (index: number) => string): string => {
  let index = 0
  return sql.replace(quotedOrParameter, (found) => (found === '?' ? replace(index++) : found))
}

const quotedOrParameter = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|\?/g

export function checkParameterCount(sql: string, expected: number, given: number): void {
  if (expected !== given) throw new TypeError(`Expected ${expected} parameters, got ${given}: ${sql}`)
}

/** Converts a bigint to a number if that is exact. */
export const toExact = (integer: bigint): number | bigint => {
  const number = Number(integer)
  return Number.isSafeInteger(number) ? number : integer
}
