/** Files: the requests and the results of batches, for APIs that exchange them as files. */

export interface StoredFile {
  readonly id: string
  /** `batch` for requests, `batch_output` for results. */
  readonly purpose: string
  readonly filename: string
  readonly bytes: number
  readonly createdAt: Date
  readonly expiresAt?: Date
}

export interface NewFile {
  readonly purpose: string
  readonly filename: string
  /** Milliseconds until the file is deleted. */
  readonly expiresAfterMs: number
}

export interface FileQuery {
  readonly purpose?: string | undefined
  /** From 1 to 10,000. */
  readonly limit: number
  /** Id of the last file of the previous page. */
  readonly after?: string | undefined
  /** @default the newest file first */
  readonly isOldestFirst?: boolean | undefined
}

export interface FilePage {
  readonly files: readonly StoredFile[]
  readonly hasMore: boolean
}
