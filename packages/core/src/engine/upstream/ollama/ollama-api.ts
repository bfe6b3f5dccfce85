/** Requests and answers of this API. Under construction: it answers no request yet. */
import type { AnswerPiece, ListedModel, UpstreamApi } from '../upstream-api.ts'
import { unsupportedByUpstream } from '../upstream-errors.ts'

export class OllamaApi implements UpstreamApi {
  headers(apiKey: string | undefined): Readonly<Record<string, string>> {
    return apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
  }

  async listModels(): Promise<readonly ListedModel[]> {
    return []
  }

  generate(): AsyncIterable<readonly AnswerPiece[]> {
    throw unsupportedByUpstream('chats', 'model')
  }
}
