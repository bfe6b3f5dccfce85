/** What is told of something that takes long: a transfer, or the making of a model. */

/** `status` in Ollama's words: clients read them. */
export interface Progress {
  readonly status: string
  /** What is transferred, where something is. */
  readonly digest?: string
  readonly totalBytes?: number
  readonly completedBytes?: number
}

export interface TransferOptions {
  readonly signal: AbortSignal
  /** Over `http` instead of `https`. Only to hosts that the app has named as private. @default false */
  readonly insecure?: boolean
}
