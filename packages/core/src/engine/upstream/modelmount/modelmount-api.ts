/** The API of other apps with Modelmount, which loses nothing: see `engine/wire/app-api.ts`. */
import { LlmError } from '../../../errors.ts'
import type { Embeddings, EmbedRequest, Ranking, RerankRequest } from '../../embeddings.ts'
import type { EngineCall } from '../../engine.ts'
import type { GenerateEvent } from '../../events.ts'
import type { GenerateRequest, LoadOptions } from '../../request.ts'
import type { DetokenizeRequest, TokenizeRequest, TokenPiece } from '../../tokens.ts'
import { paths } from '../../wire/app-api.ts'
import { type ModelEntry, parseModels } from '../../wire/model-schema.ts'
import { decodeVector } from '../../wire/vectors.ts'
import type { ListedModel, UpstreamApi } from '../upstream-api.ts'
import type { UpstreamClient } from '../upstream-client.ts'
import { invalidResponse } from '../upstream-errors.ts'
import { readLines, readResult, type WireResult } from './read-lines.ts'

export class ModelmountApi implements UpstreamApi {
  readonly countsExactly = true

  headers(apiKey: string | undefined): Readonly<Record<string, string>> {
    return apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
  }

  async listModels(client: UpstreamClient, signal: AbortSignal): Promise<readonly ListedModel[]> {
    const body = await client.readJson({ path: paths.models, model: '', signal }).catch(explainMissingApi)
    const models = parseModels(body)
    if (!models) throw invalidResponse('it has no list of models')
    return models.map(toListedModel)
  }

  /** The engine calls `onProgress` also for callers that want no events about it. */
  async *generate(
    request: GenerateRequest,
    client: UpstreamClient,
    { signal, onProgress }: EngineCall,
  ): AsyncGenerator<GenerateEvent> {
    const json = { ...request, ...(onProgress && { returnProgress: true }) }
    for await (const lines of readLines(client, { path: paths.generate, json, model: request.model, signal }))
      for (const line of lines) {
        if (!('event' in line)) throw invalidResponse('a line is no event')
        const { event } = line
        if (event.type === 'progress') onProgress?.(event)
        if (event.type !== 'progress' || request.returnProgress) yield event
        if (event.type === 'end') return
      }
    if (!signal.aborted) throw invalidResponse('it ended before the answer was complete')
  }

  countTokens(request: GenerateRequest, client: UpstreamClient, call: EngineCall): Promise<number> {
    return readNumber(paths.countTokens, request, client, call)
  }

  countCachedTokens(request: GenerateRequest, client: UpstreamClient, call: EngineCall): Promise<number> {
    return readNumber(paths.countCachedTokens, request, client, call)
  }

  async render(request: GenerateRequest, client: UpstreamClient, call: EngineCall): Promise<string> {
    return toText(await read(paths.render, request, client, call))
  }

  async embed(request: EmbedRequest, client: UpstreamClient, call: EngineCall): Promise<Embeddings> {
    const { items, result } = await read(paths.embed, request, client, call)
    const { inputTokens, loadMs, totalMs } = numbersIn(result, ['inputTokens', 'loadMs', 'totalMs'])
    expectItems(items, request.inputs.length, isText)
    return { embeddings: items.map(decodeVector), inputTokens, loadMs, totalMs }
  }

  async rerank(request: RerankRequest, client: UpstreamClient, call: EngineCall): Promise<Ranking> {
    const { items, result } = await read(paths.rerank, request, client, call)
    expectItems(items, request.documents.length, isNumber)
    return { scores: items, ...numbersIn(result, ['inputTokens']) }
  }

  async tokenize(
    request: TokenizeRequest,
    client: UpstreamClient,
    call: EngineCall,
  ): Promise<readonly number[]> {
    const { items } = await read(paths.tokenize, request, client, call)
    expectItems(items, items.length, isNumber)
    return items
  }

  async detokenize(request: DetokenizeRequest, client: UpstreamClient, call: EngineCall): Promise<string> {
    return toText(await read(paths.detokenize, request, client, call))
  }

  async tokenPieces(
    request: DetokenizeRequest,
    client: UpstreamClient,
    call: EngineCall,
  ): Promise<readonly TokenPiece[]> {
    const { items } = await read(paths.tokenPieces, request, client, call)
    expectItems(items, request.tokens.length, isPiece)
    return items
  }

  async load(model: string, load: LoadOptions, client: UpstreamClient, call: EngineCall): Promise<void> {
    const request = { model, load }
    await read(paths.load, request, client, call)
  }

  async unload(model: string, client: UpstreamClient, signal: AbortSignal): Promise<void> {
    await read(paths.unload, { model }, client, { signal })
  }

  deletePromptStates(client: UpstreamClient, signal: AbortSignal): Promise<number> {
    return readNumber(paths.deletePromptStates, { model: '' }, client, { signal })
  }
}

const read = (
  path: string,
  json: { readonly model: string },
  client: UpstreamClient,
  call: EngineCall,
): Promise<WireResult> => readResult(client, { path, json, model: json.model, signal: call.signal }, call)

async function readNumber(...call: Parameters<typeof read>): Promise<number> {
  const { result } = await read(...call)
  if (typeof result !== 'number') throw invalidResponse('the count is missing')
  return result
}

function numbersIn<Name extends string>(
  result: WireResult['result'],
  names: readonly Name[],
): Readonly<Record<Name, number>> {
  if (typeof result !== 'object' || !result || !names.every((name) => isNumber(result[name])))
    throw invalidResponse('a number is missing')
  return result as Record<Name, number>
}

const isText = (item: unknown): item is string => typeof item === 'string'
const isNumber = (item: unknown): item is number => typeof item === 'number'
const isPiece = (item: unknown): item is TokenPiece =>
  isText(item) || (Array.isArray(item) && item.every(isNumber))

function expectItems<Item>(
  items: readonly unknown[],
  count: number,
  isItem: (item: unknown) => item is Item,
): asserts items is readonly Item[] {
  if (items.length !== count || !items.every(isItem)) throw invalidResponse('its list is not as expected')
}

function toText({ items }: WireResult): string {
  expectItems(items, items.length, isText)
  return items.join('')
}

const toListedModel = ({ modifiedAt, ...model }: ModelEntry): ListedModel => ({
  ...model,
  modifiedAt: new Date(modifiedAt),
  contextSize: model.details?.contextSize,
  ...(model.details && {
    capabilities: model.details.capabilities,
    parameterSize: model.details.parameterSize,
    quantization: model.details.quantization,
    architecture: model.details.architecture,
  }),
})

/** A server without this path is no app with Modelmount, has another version, or serves other APIs only. */
function explainMissingApi(cause: unknown): never {
  if (!LlmError.is(cause) || cause.code !== 'not_found') throw cause
  throw new LlmError(
    'upstream',
    'The upstream server does not serve the API modelmount of this version.',
    { setup: true, upstreamFailure: 'refused' },
    { cause },
  )
}
