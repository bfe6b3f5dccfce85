/** What a caller can do with its batches and files. */
import type { Batch, BatchFormat, BatchStatus, CreateBatchOptions, ItemOutcome } from './batch.ts'
import type { FilePage, FileQuery, NewFile, StoredFile } from './files/file.ts'

/** Which batches to list. Set either `after` or `before`. */
export interface BatchQuery {
  /** Only batches of this format. @default batches of both formats */
  readonly format?: BatchFormat | undefined
  /** Only batches that have come so far. @default batches of any status */
  readonly status?: BatchStatus | undefined
  /** From 1 to 1,000. @default 20 */
  readonly limit?: number | undefined
  /** Id of the last batch of the previous page. @default the first page */
  readonly after?: string | undefined
  /** Id of the first batch of the next page. @default the first page */
  readonly before?: string | undefined
}

/** One page, the newest batch first. */
export interface BatchPage {
  /** At most `limit` batches of the query. */
  readonly batches: readonly Batch[]
  /** Whether there are more in the direction of the query. */
  readonly hasMore: boolean
}

/** The result of one item, in the order of the requests. */
export interface BatchResult {
  /** The `custom_id` of the request. */
  readonly customId: string
  /** How the item has ended. */
  readonly outcome: ItemOutcome
  /** The line of the item in the results, in the format of the batch. */
  readonly line: object
}

/** What a caller can do with batches: those of its own tenant. The app itself sees all. */
export interface BatchActions {
  /**
   * Stores requests as a batch, which then runs in the background. Resolves when all of them are stored. Rejects with an
   * `LlmError`: `invalid_request` for an invalid request or none, `rate_limit` if too many requests wait, `unavailable` if
   * the database fails. Without a database, all methods reject with `invalid_request`.
   */
  create(requests: Iterable<unknown> | AsyncIterable<unknown>, options?: CreateBatchOptions): Promise<Batch>
  /**
   * Creates a batch of the list `requests` in a JSON object, which is parsed as its bytes come. Rejects like `create`, and
   * with `too_large`.
   */
  createFromJson(body: AsyncIterable<Uint8Array>, options?: CreateBatchOptions): Promise<Batch>
  /** Creates a batch whose requests are the lines of a file. They are checked in the background. */
  createFromFile(fileId: string, options: CreateBatchOptions): Promise<Batch>
  /** Rejects with `not_found` for an unknown id, and for a batch of another tenant. So do the other methods. */
  get(id: string): Promise<Batch>
  /** The newest batch comes first. */
  list(query?: BatchQuery): Promise<BatchPage>
  /** Cancels a batch. Requests that run already end. Returns a batch that has ended unchanged. */
  cancel(id: string): Promise<Batch>
  /** Deletes a batch and its results. Rejects with `invalid_request` if it has not ended. */
  delete(id: string): Promise<void>
  /** Yields the results of a batch. Rejects with `invalid_request` if it has not ended. */
  results(id: string): AsyncIterable<BatchResult>
  /** Resolves with the results as lines, which are not parsed. Rejects like `results`. */
  resultLines(id: string): Promise<AsyncIterable<string>>
  /** Yields the batch at once, and when it has changed, at most five times a second, until it has ended. */
  watch(id: string, options?: { readonly signal?: AbortSignal | undefined }): AsyncIterable<Batch>
  /** Resolves with the batch when it has ended. */
  waitUntilEnded(id: string, options?: { readonly signal?: AbortSignal | undefined }): Promise<Batch>
  /** Files with the requests and results of batches. */
  readonly files: FileActions
}

/** `expiresAfterMs` is the option `batches.fileRetentionDays` by default. */
export type FileSettings = Omit<NewFile, 'expiresAfterMs'> & Partial<NewFile>

/** What a caller can do with files: those of its own tenant. */
export interface FileActions {
  /**
   * Stores a file. Rejects with the error of `content`, and with an `LlmError` `too_large` or `rate_limit`.
   *
   * @param file may be a function that is called when `content` has ended, and that may reject
   */
  create(
    file: FileSettings | (() => Promise<FileSettings>),
    content: AsyncIterable<Uint8Array>,
  ): Promise<StoredFile>
  /** Rejects with `not_found` for an unknown id, and for a file of another tenant. So do the other methods. */
  get(id: string): Promise<StoredFile>
  /**
   * Lists files, the newest one first unless `isOldestFirst` is set. Rejects with `not_found` for an unknown `after`.
   */
  list(query: FileQuery): Promise<FilePage>
  /** Deletes a file. Rejects with `not_found` for an unknown id. */
  delete(id: string): Promise<void>
  /** Resolves when the file is found. */
  read(id: string): Promise<AsyncIterable<Uint8Array | string>>
}
