/** Progress of a transfer or of creating a model. */

/** `status` uses Ollama's texts, which clients match on. */
export interface Progress {
  readonly status: string
  /** Digest of the blob that is transferred. */
  readonly digest?: string
  readonly totalBytes?: number
  readonly completedBytes?: number
}

export interface TransferOptions {
  readonly signal: AbortSignal
  /** Allows `http`, but only to private hosts. @default false */
  readonly insecure?: boolean
}
