/** Starts one answer, and waits for its first event. */
import type { GenerateEvent, PromptUsage } from '../engine/events.ts'
import type { LimitStatus } from '../errors.ts'
import type { ModelRequest } from './call.ts'
import { GenerationEvents, type GenerationSettings } from './generation-events.ts'

/** A running answer, which can be iterated once. Ends without an error when the caller's signal aborts. */
export interface Generation extends AsyncIterable<GenerateEvent> {
  /** Id of the response. */
  readonly id: string
  /** The model name from the request of the caller. */
  readonly model: string
  /** When the answer began. */
  readonly createdAt: Date
  /**
   * Usage of the prompt, from the `start` event. Absent if a stream has waited 5 s without that event, and if the progress
   * of the load is reported before it.
   */
  readonly promptUsage?: PromptUsage
  /** Whether the answer is an item of a batch. */
  readonly isBatchItem?: true
  /** Status of the limits when the call was admitted, for response headers. Empty if no limits apply. */
  readonly limits: readonly LimitStatus[]
}

/**
 * How long a stream waits for its first event before its headers are sent, in ms. Later failures arrive in
 * the stream.
 */
const openAfterMs = 5_000

/**
 * Runs the steps that may wait, calls the engine, and waits for the first event. A stream waits at most 5 s.
 * Rejects with any error that occurs before the wait ends.
 */
export async function openGeneration(settings: GenerationSettings, isStream: boolean): Promise<Generation> {
  const events = new GenerationEvents(settings)
  const first = await events.waitForFirst(isStream ? openAfterMs : undefined)
  const { call } = settings.run
  return {
    id: call.id,
    model: (call.originalRequests[settings.part] as ModelRequest).model,
    createdAt: new Date(),
    ...(call.batchItem && { isBatchItem: true }),
    limits: call.limits,
    ...(first?.type === 'start' && { promptUsage: first }),
    [Symbol.asyncIterator]: () => events,
  }
}
