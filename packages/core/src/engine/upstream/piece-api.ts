/** An API whose answers are read in pieces, which become the events of the contract. */
import type { EngineCall } from '../engine.ts'
import type { GenerateEvent } from '../events.ts'
import type { GenerateRequest } from '../request.ts'
import { toEvents } from './answer-events.ts'
import type { AnswerDefaults, AnswerPiece } from './upstream-api.ts'
import type { UpstreamClient } from './upstream-client.ts'

/** An answer that a server is sending. */
export interface UpstreamAnswer<Part> {
  /** The events or lines of the answer, in the lists in which they arrive. Ends early when the signal of the call aborts. */
  readonly parts: AsyncIterable<readonly Part[]>
  readonly reader: AnswerReader<Part>
}

/** Reads one answer. Its methods throw an `LlmError` for a part that is not as expected, or reports an error. */
export interface AnswerReader<Part> {
  /** Returns the pieces in a part. The last piece of an answer is `end`. */
  read(part: Part): readonly AnswerPiece[]
  /** Returns the last piece of an answer that ends with the response. */
  end?(): AnswerPiece | undefined
}

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
