/** What an engine knows about its ability to answer. */
import type { Model } from '../models/model.ts'

/** None of the methods loads a model or keeps one loaded for longer. Their texts are for operators, not for clients. */
export interface EngineHealth {
  /** Resolves with the reason why the engine can run no call now, such as a full disk. Undefined if it can. */
  problem(): Promise<string | undefined>
  /**
   * Resolves with the reason why a call of this model would fail or wait now: its process hangs, has just crashed or
   * keeps failing. Undefined without such a reason, also for a model that is not loaded.
   *
   * @param signal ends the wait for a process that does not answer
   */
  problemOf(model: Model, signal: AbortSignal): Promise<string | undefined>
  /**
   * Resolves when the model has decoded a token, or at once if it is not loaded. Tokens for other calls count.
   * Rejects with an `LlmError`, or with an `AbortError` when the signal aborts.
   */
  probe(model: Model, signal: AbortSignal): Promise<void>
}
