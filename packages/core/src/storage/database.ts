/** The one seam to SQL. What is durable asks it in the words that SQLite and PostgreSQL have in common. */

export type SqlValue = string | number | bigint | Uint8Array | null

export interface Queries {
  /**
   * Whole numbers come back as numbers where these are exact, else as bigints; truth as 1 and 0.
   *
   * @param sql one statement, with `?` for each parameter
   */
  query<Row extends object>(sql: string, parameters?: readonly SqlValue[]): Promise<readonly Row[]>
}

export interface Database extends Queries {
  /** The database's own clock as an expression of SQL: whole milliseconds since 1970. Read anew by each statement. */
  readonly clock: string
  /**
   * Rolled back where `work` throws. `work` asks only what it is given, and may run again where others were in its way.
   * SQLite has one transaction at a time, and all other queries wait for it. Rejects with an `UncertainOutcome` where it may have
   * happened all the same.
   */
  transaction<Result>(
    work: (queries: Queries) => Promise<Result>,
    options?: TransactionOptions,
  ): Promise<Result>
  close(): Promise<void>
}

export interface TransactionOptions {
  /** No other one that says so runs at the same time, in any process. @default false */
  readonly exclusive?: boolean
}

/** Nobody knows whether the transaction has happened: its last word was not answered. */
export class UncertainOutcome extends Error {
  override readonly name = 'UncertainOutcome'
}

/** Each `?` of a statement that is no part of a text, a name or a comment, by what `replace` makes of it. */
export const replaceParameters = (sql: string, replace: (index: number) => string): string => {
  let index = 0
  return sql.replace(quotedOrParameter, (found) => (found === '?' ? replace(index++) : found))
}

const quotedOrParameter = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|\?/g

export function checkParameterCount(sql: string, expected: number, given: number): void {
  if (expected !== given) throw new TypeError(`Expected ${expected} parameters, got ${given}: ${sql}`)
}

/** A whole number as it is best read: exact in any case. */
export const toExact = (integer: bigint): number | bigint => {
  const number = Number(integer)
  return Number.isSafeInteger(number) ? number : integer
}
