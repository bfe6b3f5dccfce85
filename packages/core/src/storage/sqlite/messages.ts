/** The messages between the app and the thread of a connection. Each request gets one response, in order. */
import type { SqlValue } from '../database.ts'
import type { SqlRow } from './connection.ts'
import type { FileChange } from './failures.ts'
import type { FileIds } from './files.ts'

/** Passed to a new thread, which responds with `OpenResponse`. */
export interface OpenRequest {
  /** An absolute path, or `:memory:`. */
  readonly path: string
  /** Whether the connection only reads. */
  readonly isReader: boolean
  /** For a reader: the files that the writer has opened. */
  readonly expected?: FileIds | undefined
  /** For a file that takes the place of another one. */
  readonly replaced?: ReplacedFile | undefined
}

export interface ReplacedFile {
  /** The files that were open. The new database must not be opened with the `-wal` or `-shm` file of the old one. */
  readonly files: FileIds
  /** Applied migrations. The new file must have the same ones, because none runs while the app runs. */
  readonly steps: readonly string[]
}

export type SqliteRequest =
  | {
      readonly type: 'run'
      readonly sql: string
      readonly parameters: readonly SqlValue[]
      /** Number of the transaction to which the statement belongs. The first statement begins it. */
      readonly transaction?: number | undefined
    }
  /** Asks for the next rows of the last statement. */
  | { readonly type: 'more' }
  | { readonly type: 'rollback' }
  | { readonly type: 'checkpoint' }
  | { readonly type: 'close' }

export type OpenResponse =
  /** `files` is undefined for a database in memory. */
  { readonly type: 'opened'; readonly files: FileIds | undefined } | FailedResponse

export type SqliteResponse =
  | {
      readonly type: 'rows'
      readonly rows: readonly SqlRow[]
      readonly hasMore: boolean
    }
  | { readonly type: 'done' }
  | FailedResponse

export interface FailedResponse {
  readonly type: 'failed'
  readonly error: Error
  /** Result code of SQLite, which a clone of the error lacks. */
  readonly code?: number | undefined
  /** For `FilesChanged`, whose class a clone lacks, too. */
  readonly change?: { readonly type: FileChange; readonly steps: readonly string[] } | undefined
}
