/**
 * Code that runs before and after each call. Features such as limits are steps. They do not wrap the events
 * of the engine.
 */
import type { CallUsage } from '../accounts/usage/call-usage.ts'
import type { Call, CallEnd } from './call.ts'

/** Logs a failure that does not end the call, and one that its client cannot correct. */
export type OnCallError = (cause: unknown, call: Call) => void

export interface CallStep {
  readonly name: string
  /** Whether `before` may take long. A stream sends its headers after 5 s, even while such a step runs. */
  readonly mayWait?: boolean
  /**
   * Runs before the engine is called. Steps run in the order of their list. An `LlmError` rejects the call.
   */
  before(call: Call): Promise<void> | void
  /**
   * Runs for each event of an answer and for each embedded or ranked text, with the usage of the call so far.
   * Must not throw.
   */
  onUsage?(call: Call, usage: CallUsage): void
  /**
   * Runs when the reader asks for an event of an answer, before the reader gets the event. If it returns a promise,
   * the reader waits for it. Must not throw or reject.
   *
   * @param usage includes the event. May change until the next event
   */
  onTaken?(call: Call, usage: CallUsage): Promise<unknown> | undefined
  /**
   * Runs when the engine has finished the answer, which the reader may still be reading. Does not run if the
   * call ends earlier. Must not reject.
   *
   * @param usage undefined if the model has evaluated nothing
   */
  onGenerated?(call: Call, usage: CallUsage | undefined): Promise<void> | void
  /**
   * Runs when the call ends, for each step whose `before` has started, even if `before` failed. Runs again if
   * `before` resolves after the end of the call. Must not reject.
   */
  after?(call: Call, end: CallEnd): Promise<void> | void
}
