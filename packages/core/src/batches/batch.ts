/** Batches: lists of requests that run in the background, at half the price. */
import type { Caller } from '../accounts/auth/caller.ts'

/** The API whose format the requests and the results of a batch have. */
export type BatchFormat = 'anthropic' | 'openai'

/**
 * `validating`: the items are read from a file. `in_progress`: they run. `canceling`: those that run already end, and no
 * other one begins. `ended`: each item has a result. `failed`: the file was invalid, and no item has run.
 */
export type BatchStatus = 'validating' | 'in_progress' | 'canceling' | 'ended' | 'failed'

/** Why an item has ended. `canceled` and `expired` items did not run. */
export type ItemOutcome = 'succeeded' | 'errored' | 'canceled' | 'expired'

/** Numbers of items. Their sum is the number of items in the batch. */
export interface BatchCounts extends Readonly<Record<ItemOutcome, number>> {
  /** Items without a result. */
  readonly processing: number
}

/** An invalid line of the file of a batch. */
export interface BatchProblem {
  /** What is wrong, for people. */
  readonly message: string
  /** Code of OpenAI's API, such as `invalid_json_line`. */
  readonly code: string
  /** Number of the line, from 1. */
  readonly line?: number
  /** Path of the invalid field. */
  readonly param?: string
}

/** A list of requests that run in the background. */
export interface Batch {
  /** Id of the batch, such as `msgbatch_…` or `batch_…`. */
  readonly id: string
  /** The format of the requests and results. */
  readonly format: BatchFormat
  /** Path of the route that each item is a request to, such as `/v1/messages`. */
  readonly endpoint: string
  /** How far the batch has come. */
  readonly status: BatchStatus
  /** Number of items by their state. */
  readonly counts: BatchCounts
  /** When the batch was created. */
  readonly createdAt: Date
  /** Items that have not begun by then do not run. */
  readonly expiresAt: Date
  /** Start of the first item, at the earliest. */
  readonly startedAt?: Date
  /** When the batch was cancelled. Absent if it was not. */
  readonly cancelRequestedAt?: Date
  /** When the last item ended. Absent while items run or wait. */
  readonly endedAt?: Date
  /** Since when the results are deleted. */
  readonly archivedAt?: Date
  /** Texts that were stored with the batch. Absent without any. */
  readonly metadata?: Readonly<Record<string, string>>
  /** Id of the file with the requests. */
  readonly inputFileId?: string
  /** Ids of the files with the results, once the batch has ended. */
  readonly outputFileId?: string
  /** Id of the file with the failed items. Absent if none has failed. */
  readonly errorFileId?: string
  /** Set if `status` is `failed`. */
  readonly problems?: readonly BatchProblem[]
  /** Models of its requests, up to 20. Absent until all are stored, and in batches that an older version has stored. */
  readonly models?: readonly string[]
  /** Set for the app, which sees the batches of all tenants. */
  readonly owner?: BatchOwner
}

/** Who has created a batch. */
export interface BatchOwner {
  /** Tenant of the caller. */
  readonly tenant: string
  /** Id of the caller. Absent for the app itself. */
  readonly caller?: string
  /** Set if the caller is an API key. `name` is the one that it had then. */
  readonly key?: { readonly id: string; readonly name: string }
}

/** Options of a new batch. */
export interface CreateBatchOptions {
  /**
   * The format of the requests, which is also that of the results. `anthropic`: `{ custom_id, params }`. `openai`:
   * `{ custom_id, method: 'POST', url, body }`.
   *
   * @default 'anthropic'
   */
  readonly format?: BatchFormat | undefined
  /** Path of the route that each request is for. @default `/v1/messages`, or `/v1/chat/completions` */
  readonly endpoint?: string | undefined
  /** Up to 16 texts that are stored with the batch. @default none */
  readonly metadata?: Readonly<Record<string, string>> | undefined
  /** Ends the creation. What was written is deleted. @default the creation runs to its end */
  readonly signal?: AbortSignal | undefined
}

/** A request of a batch, before it is stored. */
export interface NewItem {
  readonly customId: string
  /** Body of the request. */
  readonly params: unknown
  readonly model: string
  /** Beginning of the prompt. Items with the same beginning run one after the other. */
  readonly prompt: string
}

/** A stored request that this process runs. */
export interface ClaimedItem {
  readonly batch: string
  /** Position in the batch, from 0. */
  readonly number: number
  /** How often the model process has crashed while the item ran. */
  readonly crashes: number
}

/** The content of a stored request. */
export interface BatchItem extends ClaimedItem {
  readonly customId: string
  readonly params: unknown
  /** Size of `params` in the database, in bytes. */
  readonly bytes: number
}

/** A batch whose items can run. */
export interface ActiveBatch {
  readonly id: string
  readonly format: BatchFormat
  readonly endpoint: string
  readonly tenant: string
  /** Undefined for the app itself. */
  readonly caller: Caller | undefined
}
