/** Requests and answers of the Anthropic API. */
import { LlmError } from '../../../errors.ts'
import type { EngineCall } from '../../engine.ts'
import type { GenerateRequest } from '../../request.ts'
import { PieceApi } from '../piece-api.ts'
import { readCount, readRecord } from '../response-fields.ts'
import type { ListedModel, UpstreamAnswer, UpstreamApi } from '../upstream-api.ts'
import type { UpstreamClient, UpstreamRequest } from '../upstream-client.ts'
import { invalidResponse } from '../upstream-errors.ts'
import { EventReader, toEmptyAnswer } from './chat-answer.ts'
import { toCountBody, toMessagesBody } from './chat-request.ts'
import { readModels } from './models.ts'

/** The version of the API that all its servers know. */
const version = '2023-06-01'

export class AnthropicApi extends PieceApi<unknown> implements UpstreamApi {
  headers(apiKey: string | undefined): Readonly<Record<string, string>> {
    return { 'anthropic-version': version, ...(apiKey !== undefined && { 'x-api-key': apiKey }) }
  }

  listModels(client: UpstreamClient, signal: AbortSignal): Promise<readonly ListedModel[]> {
    return readModels(client, signal)
  }

  protected answer(
    request: GenerateRequest,
    client: UpstreamClient,
    { signal }: EngineCall,
  ): UpstreamAnswer<unknown> {
    const json = toMessagesBody(request)
    const { model } = request
    const message = { path: '/v1/messages', json, model, signal }
    if (json.stream) return { parts: client.readEvents(message), reader: new EventReader(model) }
    return { parts: readWhole(client, message), reader: { read: toEmptyAnswer } }
  }

  async countTokens(
    request: GenerateRequest,
    client: UpstreamClient,
    { signal }: EngineCall,
  ): Promise<number | undefined> {
    const json = toCountBody(request)
    try {
      const path = '/v1/messages/count_tokens'
      const body = await client.readJson({ path, json, model: request.model, signal })
      const count = readCount(readRecord(body, 'the count').input_tokens, '`input_tokens`')
      if (count === undefined) throw invalidResponse('the count is missing')
      return count
    } catch (cause) {
      // Other servers with this API may lack the route.
      if (LlmError.is(cause) && cause.code === 'not_found') return undefined
      throw cause
    }
  }
}

/** Yields the JSON of a response. Ends without an error when the signal aborts. */
async function* readWhole(
  client: UpstreamClient,
  request: UpstreamRequest,
): AsyncGenerator<readonly unknown[]> {
  try {
    yield [await client.readJson(request)]
  } catch (cause) {
    if (!request.signal.aborted) throw cause
  }
}
