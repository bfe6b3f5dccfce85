/** The SQL interface. Statements use the common subset of SQLite and PostgreSQL. */

export type SqlValue = string | number | bigint | Uint8Array | null

export interface Queries {
  /**
   * Integers are numbers where these are exact, else bigints. Booleans are 1 and 0.
   *
   * @param sql one statement, with `?` for each parameter
   */
  query<Row extends object>(sql: string, parameters?: readonly SqlValue[]): Promise<readonly Row[]>
}

export interface Database extends Queries {
  /** SQL expression for the database's clock, evaluated per statement: milliseconds since 1970. */
  readonly clock: string
  /**
   * Rolls back when `work` throws. `work` uses only the queries it gets, and is repeated after a conflict.
   * SQLite runs one transaction at a time; all other queries wait. Rejects with `UncertainOutcome` where the commit may have
   * succeeded.
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

/** Replaces each `?` outside of strings, identifiers and comments. */
export const replaceParameters = (sql: string, replace: (index: number) => string): string => {
  let index = 0
  return sql.replace(quotedOrParameter, (found) => (found === '?' ? replace(index++) : found))
}

const quotedOrParameter = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|\?/g

export function checkParameterCount(sql: string, expected: number, given: number): void {
  if (expected !== given) throw new TypeError(`Expected ${expected} parameters, got ${given}: ${sql}`)
}

/** A number where it is exact, else the bigint. */
export const toExact = (integer: bigint): number | bigint => {
  const number = Number(integer)
  return Number.isSafeInteger(number) ? number : integer
}
