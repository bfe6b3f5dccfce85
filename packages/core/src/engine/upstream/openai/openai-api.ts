/** OpenAI's API, with what vLLM, SGLang, llama-server and other servers add to it. */
import type { EventSourceMessage } from 'eventsource-parser'
import { isRecord } from '../../../util/is-record.ts'
import type { Embeddings, EmbedRequest, Ranking, RerankRequest } from '../../embeddings.ts'
import type { EngineCall } from '../../engine.ts'
import type { GenerateRequest } from '../../request.ts'
import { isRaw } from '../../request-input.ts'
import type { DetokenizeRequest, TokenizeRequest } from '../../tokens.ts'
import type { OpenAiServer } from '../options.ts'
import { PieceApi } from '../piece-api.ts'
import type { ListedModel, UpstreamAnswer, UpstreamApi } from '../upstream-api.ts'
import type { UpstreamClient } from '../upstream-client.ts'
import { invalidResponse, unsupportedByUpstream } from '../upstream-errors.ts'
import { ChunkReader, toCount } from './answer-chunks.ts'
import { toChat, toChatRequest } from './chat-request.ts'
import { toCompletionRequest } from './completion-request.ts'
import { embed, rerank } from './pooling.ts'
import { detectServer, type ServerFeatures, serverFeatures } from './server-kind.ts'
import { OpenAiTokenizer } from './tokenizer.ts'
import { toWellFormedJson } from './well-formed-json.ts'

export class OpenAiApi extends PieceApi<EventSourceMessage> implements UpstreamApi {
  #server: OpenAiServer | undefined

  /** @param server undefined to find out by the list of models */
  constructor(server: OpenAiServer | undefined) {
    super()
    this.#server = server
  }

  headers(apiKey: string | undefined): Readonly<Record<string, string>> {
    return apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
  }

  async listModels(client: UpstreamClient, signal: AbortSignal): Promise<readonly ListedModel[]> {
    const body = await client.readJson({ path: '/v1/models', model: '', signal })
    if (!isRecord(body) || !Array.isArray(body.data)) throw invalidResponse('it has no list of models')
    const models = body.data.filter(isRecord).filter(({ id }) => typeof id === 'string' && id !== '')
    this.#server ??= detectServer(models.map((model) => model.owned_by))
    return models.map((model) => ({ ...toListedModel(model), ...toCapabilities(body.models, model.id) }))
  }

  protected async answer(
    request: GenerateRequest,
    client: UpstreamClient,
    call: EngineCall,
  ): Promise<UpstreamAnswer<EventSourceMessage>> {
    const { features, own } = await this.#open(client, call)
    const { path, json } = toBody(request, features, call.tenant)
    const { model } = request
    const parts = own.readEvents({ path, json, model, signal: call.signal })
    return { parts, reader: new ChunkReader(model) }
  }

  async countTokens(
    request: GenerateRequest,
    client: UpstreamClient,
    call: EngineCall,
  ): Promise<number | undefined> {
    const { features, own } = await this.#open(client, call)
    return features.tokenizer && new OpenAiTokenizer(own, features).count(request, call)
  }

  async render(request: GenerateRequest, client: UpstreamClient, call: EngineCall): Promise<string> {
    return (await this.#tokenizer(client, call)).render(request, call)
  }

  async tokenize(
    request: TokenizeRequest,
    client: UpstreamClient,
    call: EngineCall,
  ): Promise<readonly number[]> {
    return (await this.#tokenizer(client, call)).tokenize(request, call)
  }

  async detokenize(request: DetokenizeRequest, client: UpstreamClient, call: EngineCall): Promise<string> {
    return (await this.#tokenizer(client, call)).detokenize(request, call)
  }

  async embed(request: EmbedRequest, client: UpstreamClient, call: EngineCall): Promise<Embeddings> {
    const { features, own } = await this.#open(client, call)
    return embed(request, features, own, call)
  }

  async rerank(request: RerankRequest, client: UpstreamClient, call: EngineCall): Promise<Ranking> {
    const { features, own } = await this.#open(client, call)
    return rerank(request, features, own, call)
  }

  async #tokenizer(client: UpstreamClient, call: EngineCall): Promise<OpenAiTokenizer> {
    const { features, own } = await this.#open(client, call)
    if (!features.tokenizer) throw unsupportedByUpstream('a tokenizer', 'model')
    return new OpenAiTokenizer(own, features)
  }

  /** Finds out what the server can do, and returns a client that writes what it takes. */
  async #open(
    client: UpstreamClient,
    { signal }: EngineCall,
  ): Promise<{ readonly features: ServerFeatures; readonly own: UpstreamClient }> {
    // A server without a list of models counts as one without further fields.
    if (!this.#server) await this.listModels(client, signal).catch(() => {})
    signal.throwIfAborted()
    const features = serverFeatures[this.#server ?? 'other']
    return { features, own: features.hasSurrogates ? client : client.withBodies(toWellFormedJson) }
  }
}

function toBody(
  request: GenerateRequest,
  features: ServerFeatures,
  tenant: string | undefined,
): { readonly path: string; readonly json: object } {
  const { input } = request
  if (input.kind === 'infill' || (input.kind === 'text' && isRaw(input)))
    return { path: '/v1/completions', json: toCompletionRequest(request, input, features, tenant) }
  return { path: '/v1/chat/completions', json: toChatRequest(request, toChat(input), features, tenant) }
}

/**
 * llama-server lists its model twice. The second list says whether a projector is loaded. Its other capabilities are the same for
 * all models.
 */
function toCapabilities(listed: unknown, id: unknown): Pick<ListedModel, 'capabilities'> {
  const model = Array.isArray(listed) ? listed.filter(isRecord).find(({ name }) => name === id) : undefined
  const known = model?.capabilities
  if (!Array.isArray(known) || !known.includes('completion')) return {}
  return {
    capabilities: ['completion', 'tools', ...(known.includes('multimodal') ? (['vision'] as const) : [])],
  }
}

/** `max_model_len` is of vLLM, `meta` of llama-server, `context_length` of hosted services. */
function toListedModel(model: Record<string, unknown>): ListedModel {
  const meta = isRecord(model.meta) ? model.meta : {}
  const contextSize =
    toCount(model.max_model_len) ??
    toCount(meta.n_ctx) ??
    toCount(meta.n_ctx_train) ??
    toCount(model.context_length)
  const created = toCount(model.created)
  return {
    name: model.id as string,
    ...(contextSize && { contextSize }),
    ...(created && { modifiedAt: new Date(created * 1_000) }),
  }
}
