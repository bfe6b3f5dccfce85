/** One call that generates answers to several prompts. */
import type { Engine } from '../engine/engine.ts'
import type { GenerateRequest } from '../engine/request.ts'
import type { CallRun } from './call-run.ts'
import { type Generation, openGeneration } from './generation.ts'

export class GenerationGroup {
  readonly #engine: Engine
  readonly #run: CallRun
  readonly #isStream: boolean

  constructor(engine: Engine, run: CallRun, isStream: boolean) {
    this.#engine = engine
    this.#run = run
    this.#isStream = isStream
  }

  /**
   * Starts the answer to one request of the group. Call it once for each request, in any order.
   *
   * @param signal aborts this answer only; the signal of the call aborts all answers
   */
  start(index: number, signal?: AbortSignal): Promise<Generation> {
    const { call } = this.#run
    const request = call.requests[index] as GenerateRequest
    return openGeneration(
      {
        ...{ engine: this.#engine, run: this.#run, part: index, request },
        signal: signal ? AbortSignal.any([signal, call.signal]) : call.signal,
      },
      this.#isStream,
    )
  }
}
