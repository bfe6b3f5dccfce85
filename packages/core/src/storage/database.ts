/** The SQL interface. Statements use the common subset of SQLite and PostgreSQL. */

export type SqlValue = string | number | bigint | Uint8Array | null

export interface Queries {
  /**
   * Runs one statement and returns its rows. Integers are numbers if that is exact, else bigints. Booleans
   * are 1 and 0.
   *
   * @param sql the statement, with `?` for each parameter
   */
  query<Row extends object>(sql: string, parameters?: readonly SqlValue[]): Promise<readonly Row[]>
}

export interface Database extends Queries {
  /**
   * SQL expression for the current time by the database's clock, in milliseconds since 1970. Each evaluation
   * returns the time at that moment, not the start of the transaction.
   */
  readonly clock: string
  /**
   * Runs `work` in a transaction, and rolls back when `work` throws. `work` must use only the queries that it
   * receives. With PostgreSQL, `work` runs again after a conflict with another transaction. With SQLite, one
   * transaction runs at a time, and all other queries wait. Rejects with `UncertainOutcome` if the commit was
   * not confirmed.
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
export class UncertainOutcome extends Error {
  override readonly name = 'UncertainOutcome'
}

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
