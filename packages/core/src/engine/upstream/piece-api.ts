/** An API whose answers are read in pieces, which become the events of the contract. */
import type { EngineCall } from '../engine.ts'
import type { GenerateEvent } from '../events.ts'
import type { GenerateRequest } from '../request.ts'
import { toEvents } from './answer-events.ts'
import type { AnswerDefaults, UpstreamAnswer } from './upstream-api.ts'
import type { UpstreamClient } from './upstream-client.ts'

export abstract class PieceApi<Part> {
  generate(
    request: GenerateRequest,
    client: UpstreamClient,
    call: EngineCall,
    answer: AnswerDefaults,
  ): AsyncIterable<GenerateEvent> {
    return toEvents(() => this.answer(request, client, call), { request, call, ...answer })
  }

  /** Begins an answer. */
  protected abstract answer(
    request: GenerateRequest,
    client: UpstreamClient,
    call: EngineCall,
  ): UpstreamAnswer<Part> | Promise<UpstreamAnswer<Part>>
}
