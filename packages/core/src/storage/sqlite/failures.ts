/** The ways in which SQLite fails while its statements are right: a lock, a broken file, an ended thread. */
import { LlmError } from '../../errors.ts'
import { databaseUnavailable } from '../database.ts'

/** Whether another connection holds the lock. */
export const isBusy = (error: unknown): boolean => {
  const code = resultCodeOf(error)
  return code === undefined ? /\bis locked\b/.test(String(error)) : code === 5 || code === 6
}

/** The error of a statement whose transaction was rolled back before, in SQLite's words `ABORT`. */
export const transactionEnded = (): Error =>
  Object.assign(
    new Error('The transaction was rolled back, because it had no statement for 4 s or has failed.'),
    {
      errcode: 4,
    },
  )
export const isTransactionEnded = (error: unknown): boolean => resultCodeOf(error) === 4

/**
 * The primary result code of SQLite (https://sqlite.org/rescode.html). Undefined for other errors, and if the
 * driver does not report it.
 */
function resultCodeOf(error: unknown): number | undefined {
  const code = error instanceof Error && 'errcode' in error ? error.errcode : undefined
  return typeof code === 'number' ? code & 0xff : undefined
}

/**
 * Result codes that no statement of ours causes: PERM, ABORT, BUSY, LOCKED, NOMEM, READONLY, INTERRUPT, IOERR, CORRUPT,
 * FULL, CANTOPEN, PROTOCOL, NOLFS, NOTADB.
 */
const unavailableCodes: ReadonlySet<number | undefined> = new Set([
  3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 22, 26,
])

/** The files of the database are not those that were opened. */
export class FilesChanged extends Error {
  override readonly name = 'FilesChanged'
  readonly change: FileChange
  /** For `replaced`: the applied migrations of the file that was opened. */
  readonly steps: readonly string[]

  constructor(change: FileChange, path: string, steps: readonly string[] = []) {
    super(`The database file ${path} ${changes[change]}.`)
    this.change = change
    this.steps = steps
  }
}

const changes = {
  missing: 'is missing or cannot be read',
  replaced: 'was replaced',
  detached: 'has lost its -wal or -shm file',
} as const
export type FileChange = keyof typeof changes

/** The thread of a connection has ended, so that its connection is closed. */
export class ThreadEnded extends Error {
  override readonly name = 'ThreadEnded'
}

/** Converts the failures of this file to `unavailable`. Other errors, such as invalid SQL, stay as they are. */
export function toUnavailable(error: unknown): unknown {
  if (LlmError.is(error)) return error
  const isFailure =
    error instanceof FilesChanged ||
    error instanceof ThreadEnded ||
    unavailableCodes.has(resultCodeOf(error)) ||
    isBusy(error)
  return isFailure ? databaseUnavailable(error) : error
}
