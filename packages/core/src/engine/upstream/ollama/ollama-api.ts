/** Requests and answers of the Ollama API. The server cannot count tokens. */
import type { Embeddings, EmbedRequest } from '../../embeddings.ts'
import type { EngineCall } from '../../engine.ts'
import type { GenerateEvent } from '../../events.ts'
import type { GenerateRequest } from '../../request.ts'
import { toEvents } from '../answer-events.ts'
import type { AnswerDefaults, AnswerPiece, ListedModel, UpstreamApi } from '../upstream-api.ts'
import type { UpstreamClient } from '../upstream-client.ts'
import { toPieces } from './chat-answer.ts'
import { toOllamaRequest } from './chat-request.ts'
import { embed } from './embeddings.ts'
import { OllamaModels } from './models.ts'

export class OllamaApi implements UpstreamApi {
  readonly #models = new OllamaModels()

  headers(apiKey: string | undefined): Readonly<Record<string, string>> {
    return apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
  }

  listModels(client: UpstreamClient, signal: AbortSignal): Promise<readonly ListedModel[]> {
    return this.#models.read(client, signal)
  }

  generate(
    request: GenerateRequest,
    client: UpstreamClient,
    call: EngineCall,
    answer: AnswerDefaults,
  ): AsyncIterable<GenerateEvent> {
    return toEvents(this.#pieces(request, client, call), { request, call, ...answer })
  }

  async *#pieces(
    request: GenerateRequest,
    client: UpstreamClient,
    { signal }: EngineCall,
  ): AsyncGenerator<readonly AnswerPiece[]> {
    const { path, body } = toOllamaRequest(request)
    const { model } = request
    yield* toPieces(client.readLines({ path, json: body, model, signal }), model)
  }

  embed(request: EmbedRequest, client: UpstreamClient, call: EngineCall): Promise<Embeddings> {
    return embed(request, client, call)
  }
}
