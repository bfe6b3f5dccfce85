/** What happens to batches in this process. */
import type { BatchFormat, ItemOutcome } from './batch.ts'

interface OfBatch {
  readonly batch: string
  readonly tenant: string
}

export interface BatchCreated extends OfBatch {
  readonly format: BatchFormat
  readonly endpoint: string
  /** Id of the caller. Undefined for the app itself. */
  readonly caller: string | undefined
  /** Undefined for a batch whose requests are in a file: it is read later. */
  readonly items: number | undefined
}

export interface BatchItemsEnded extends OfBatch {
  readonly outcome: ItemOutcome
  /** Number of items. More than one if a batch is canceled or expires. */
  readonly items: number
}

/** All items of a batch have ended, or its file is invalid. */
export interface BatchEnded extends OfBatch {
  readonly status: 'ended' | 'failed'
}

export type BatchEvent =
  | ({ readonly type: 'create' } & BatchCreated)
  | ({ readonly type: 'item' } & BatchItemsEnded)
  | ({ readonly type: 'end' } & BatchEnded)
