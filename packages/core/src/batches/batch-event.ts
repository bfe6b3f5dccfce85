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

/** The requests of a batch are checked and stored, so that its items can run. */
export interface BatchStarted extends OfBatch {
  readonly items: number
}

export interface BatchItemsEnded extends OfBatch {
  readonly outcome: ItemOutcome
  /** Number of items. More than one if a batch is canceled or expires. */
  readonly items: number
}

/** All items of a batch have ended, or its file is invalid. */
export interface BatchEnded extends OfBatch {
  readonly status: 'ended' | 'failed'
  readonly counts: ItemCounts
}

/** Numbers of items, by how they have ended. */
export type ItemCounts = Readonly<Record<ItemOutcome, number>>

export type BatchEvent =
  | ({ readonly type: 'create' } & BatchCreated)
  | ({ readonly type: 'start' } & BatchStarted)
  | ({ readonly type: 'item' } & BatchItemsEnded)
  | ({ readonly type: 'end' } & BatchEnded)
