/** Progress of a transfer or of creating a model. */

/** `status` uses Ollama's texts, which clients match on. */
export interface Progress {
  /** What is done now, such as `pulling manifest`. The last one is `success`. */
  readonly status: string
  /** Digest of the blob that is transferred. */
  readonly digest?: string
  /** Size of the blob, in bytes. Absent between blobs. */
  readonly totalBytes?: number
  /** Bytes of the blob that are transferred. Absent between blobs. */
  readonly completedBytes?: number
}

/** Options of pulls and pushes. */
export interface TransferOptions {
  /** Cancels the transfer. A later pull resumes where it ended. */
  readonly signal: AbortSignal
  /** Allows `http`, but only to private hosts. @default false */
  readonly insecure?: boolean
}
