/** What happens to batches in this process. */
import type { BatchFormat, ItemOutcome } from './batch.ts'

interface OfBatch {
  /** Id of the batch. */
  readonly batch: string
  /** Tenant of the caller that has created it. */
  readonly tenant: string
}

/** A batch was created. Its requests may still have to be read from a file. */
export interface BatchCreated extends OfBatch {
  /** The format of the requests and results. */
  readonly format: BatchFormat
  /** Path of the route that each item is a request to, such as `/v1/messages`. */
  readonly endpoint: string
  /** Id of the caller. Undefined for the app itself. */
  readonly caller: string | undefined
  /** Undefined for a batch whose requests are in a file: it is read later. */
  readonly items: number | undefined
}

/** The requests of a batch are checked and stored, so that its items can run. */
export interface BatchStarted extends OfBatch {
  /** Number of items. */
  readonly items: number
}

/** Items of a batch have ended. */
export interface BatchItemsEnded extends OfBatch {
  /** How the items have ended. */
  readonly outcome: ItemOutcome
  /** Number of items. More than one if a batch is canceled or expires. */
  readonly items: number
}

/** All items of a batch have ended, or its file is invalid. */
export interface BatchEnded extends OfBatch {
  /** `failed` if its file was invalid, so that no item has run. */
  readonly status: 'ended' | 'failed'
  /** Number of items by their outcome. */
  readonly counts: ItemCounts
}

/** Numbers of items, by how they have ended. */
export type ItemCounts = Readonly<Record<ItemOutcome, number>>

export type BatchEvent =
  | ({ readonly type: 'create' } & BatchCreated)
  | ({ readonly type: 'start' } & BatchStarted)
  | ({ readonly type: 'item' } & BatchItemsEnded)
  | ({ readonly type: 'end' } & BatchEnded)
