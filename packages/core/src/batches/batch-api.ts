/** What an API defines about its batches. The dialects implement it, and the worker uses it. */
import type { RouteClient } from '../calls/client.ts'
import type { LlmError } from '../errors.ts'
import type { BatchFormat, BatchItem, BatchProblem, NewItem } from './batch.ts'

export interface BatchApi {
  readonly format: BatchFormat
  /** Beginning of the ids of batches. */
  readonly idPrefix: string
  /** Paths of the routes that items can be requests to. The first one is the default. */
  readonly endpoints: readonly string[]
  /** Whether the results are also files, with the ids of the batch. */
  readonly hasResultFiles: boolean
  /** Creates a parser for the requests of one batch. */
  createParser(endpoint: string): ItemParser
  /** Describes an invalid line of a file. */
  toProblem(error: LlmError, line: number): BatchProblem
  /**
   * Runs an item like a request to its endpoint, and returns its line in the results. Rejects with the `LlmError` of
   * the request, or when the signal aborts.
   */
  run(item: BatchItem, endpoint: string, call: ItemCall): Promise<string>
  /** Renders the line of an item that has failed. */
  renderError(item: BatchItem, endpoint: string, error: LlmError): string
  /** Renders the line of an item that did not run. */
  renderNotRun(
    item: Pick<BatchItem, 'batch' | 'number' | 'customId'>,
    outcome: 'canceled' | 'expired',
  ): string
}

/**
 * Parses the next request of a batch. Throws an `LlmError` `invalid_request` if the whole batch is to be rejected, such as
 * for an id that an earlier request has.
 *
 * @param index position in the batch, from 0
 */
export type ItemParser = (entry: unknown, index: number) => NewItem

export interface ItemCall {
  readonly llm: RouteClient
  readonly signal: AbortSignal
}
