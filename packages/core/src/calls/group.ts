/** Several generations that are one call: the answers to several prompts. */
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
   * Asks for the answer to one of the requests. Each is started once, in any order.
   *
   * @param signal aborts this answer alone @default the signal of the group
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
