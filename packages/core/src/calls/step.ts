/** A step around a call. Tracing, limits and batches are added as steps, never as wrappers of the event iterator. */
import type { TokenUsage } from '../engine/events.ts'
import type { Call, CallEnd } from './call.ts'

export interface CallStep {
  readonly name: string
  /** Whether `before` may take long. Such steps count towards the 5 s after which a stream opens without its first event. */
  readonly mayWait?: boolean
  /** Runs before the engine, in the order of the list. An `LlmError` rejects the call. */
  before(call: Call): Promise<void> | void
  /** Runs whenever tokens are handed to the reader. Must not throw, and nothing waits for it. */
  onUsage?(call: Call, usage: TokenUsage): void
  /** Runs when the call ends, if `before` was started, even if that failed. Runs once more if `before` ends after the call. Must not reject. */
  after?(call: Call, end: CallEnd): Promise<void> | void
}
