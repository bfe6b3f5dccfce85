/** Files: the requests and the results of batches, for APIs that exchange them as files. */

/** A file with the requests or the results of a batch. */
export interface StoredFile {
  /** Id of the file, such as `file-…`. */
  readonly id: string
  /** `batch` for requests, `batch_output` for results. */
  readonly purpose: string
  /** Name that the uploader has given it. */
  readonly filename: string
  /** Size of the content, in bytes. */
  readonly bytes: number
  /** When the upload began. */
  readonly createdAt: Date
  /** When the file is deleted. Absent if it stays until it is deleted. */
  readonly expiresAt?: Date
}

export interface NewFile {
  readonly purpose: string
  readonly filename: string
  /** Milliseconds until the file is deleted. */
  readonly expiresAfterMs: number
}

/** Which files to list. */
export interface FileQuery {
  /** Only files of this purpose. @default files of all purposes */
  readonly purpose?: string | undefined
  /** From 1 to 10,000. */
  readonly limit: number
  /** Id of the last file of the previous page. @default the first page */
  readonly after?: string | undefined
  /** Whether the oldest file comes first. @default false: the newest one comes first */
  readonly isOldestFirst?: boolean | undefined
}

/** One page of a list of files. */
export interface FilePage {
  /** At most `limit` files of the query. */
  readonly files: readonly StoredFile[]
  /** Whether further files follow. */
  readonly hasMore: boolean
}
