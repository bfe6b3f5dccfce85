/** An API whose answers are read in pieces, which become the events of the contract. */
import type { EngineCall } from '../engine.ts'
import type { GenerateEvent } from '../events.ts'
import type { GenerateRequest } from '../request.ts'
import { toEvents } from './answer-events.ts'
import type { AnswerDefaults, AnswerPiece } from './upstream-api.ts'
import type { UpstreamClient } from './upstream-client.ts'

export abstract class PieceApi {
  generate(
    request: GenerateRequest,
    client: UpstreamClient,
    call: EngineCall,
    answer: AnswerDefaults,
  ): AsyncIterable<GenerateEvent> {
    return toEvents(this.pieces(request, client, call), { request, call, ...answer })
  }

  /** Yields the pieces of an answer in the lists in which they arrive. The last piece is `end`. */
  protected abstract pieces(
    request: GenerateRequest,
    client: UpstreamClient,
    call: EngineCall,
  ): AsyncIterable<readonly AnswerPiece[]>
}
