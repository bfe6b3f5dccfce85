/** Requests and answers of the Ollama API. The server cannot count tokens. */
import type { Embeddings, EmbedRequest } from '../../embeddings.ts'
import type { EngineCall } from '../../engine.ts'
import type { GenerateRequest } from '../../request.ts'
import { PieceApi } from '../piece-api.ts'
import type { ListedModel, UpstreamAnswer, UpstreamApi } from '../upstream-api.ts'
import type { UpstreamClient } from '../upstream-client.ts'
import { LineReader } from './chat-answer.ts'
import { toOllamaRequest } from './chat-request.ts'
import { embed } from './embeddings.ts'
import { OllamaModels } from './models.ts'

export class OllamaApi extends PieceApi<string> implements UpstreamApi {
  readonly #models = new OllamaModels()

  headers(apiKey: string | undefined): Readonly<Record<string, string>> {
    return apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
  }

  listModels(client: UpstreamClient, signal: AbortSignal): Promise<readonly ListedModel[]> {
    return this.#models.read(client, signal)
  }

  protected answer(
    request: GenerateRequest,
    client: UpstreamClient,
    { signal }: EngineCall,
  ): UpstreamAnswer<string> {
    const { path, body } = toOllamaRequest(request)
    const { model } = request
    return { parts: client.readLines({ path, json: body, model, signal }), reader: new LineReader(model) }
  }

  embed(request: EmbedRequest, client: UpstreamClient, call: EngineCall): Promise<Embeddings> {
    return embed(request, client, call)
  }
}
