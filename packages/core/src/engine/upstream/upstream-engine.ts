/** An engine whose models run on another server. */
import { createHash } from 'node:crypto'
import { invalidRequest, LlmError, modelNotFound } from '../../errors.ts'
import type { ModelDetails } from '../../models/gguf/model-details.ts'
import type { Model } from '../../models/model.ts'
import type { Embeddings, EmbedRequest, Ranking, RerankRequest } from '../embeddings.ts'
import type { Engine, EngineCall, LoadedModel } from '../engine.ts'
import type { EngineHealth } from '../engine-health.ts'
import type { GenerateEvent } from '../events.ts'
import type { GenerateRequest, LoadOptions } from '../request.ts'
import { boundImageTokens, estimatePromptTokens, measureTextBytes } from '../request-input.ts'
import { unlimitedTokens } from '../request-limits.ts'
import type { DetokenizeRequest, TokenizeRequest, TokenPiece } from '../tokens.ts'
import { BackgroundTurns } from './background-turns.ts'
import { toForwardedHeaders } from './forwarded-headers.ts'
import type { ResolvedUpstreamOptions } from './options.ts'
import type { UpstreamApi } from './upstream-api.ts'
import { UpstreamClient } from './upstream-client.ts'
import { unsupportedByUpstream } from './upstream-errors.ts'
import { UpstreamModels } from './upstream-models.ts'

/** Time limit for the end of running calls, in ms, since calls without a caller have no signal. */
const unloadTimeoutMs = 300_000
/** Tokens of the template's markup around a message, at most. */
const maxMarkupTokens = 32

export class UpstreamEngine implements Engine {
  readonly #api: UpstreamApi
  readonly #client: UpstreamClient
  readonly #models: UpstreamModels
  readonly #turns: BackgroundTurns
  readonly #fingerprint: string
  readonly #forwardsTenants: boolean
  /** Names of the models that calls have used. */
  readonly #used = new Set<string>()
  /** A server that is away is a problem of its models, and not of the app. */
  readonly health: EngineHealth = {
    problem: async () => undefined,
    problemOf: async () => undefined,
    probe: (_model, signal) => this.#expectAnswer(signal),
  }

  /** Absent if the API cannot count them: otherwise, each prompt with a breakpoint would be counted in vain. */
  readonly countCachedTokens?: NonNullable<Engine['countCachedTokens']>

  constructor(options: ResolvedUpstreamOptions, api: UpstreamApi) {
    this.#api = api
    if (api.countCachedTokens)
      this.countCachedTokens = async (request, call) =>
        api.countCachedTokens?.(this.#toOwn(request, call), this.#clientFor(call), call) ?? 0
    this.#client = new UpstreamClient(options, (apiKey) => api.headers(apiKey))
    this.#models = new UpstreamModels(options, (signal) => api.listModels(this.#client, signal))
    this.#turns = new BackgroundTurns(options.backgroundBelow)
    this.#forwardsTenants = options.forwardTenants
    const hash = createHash('sha256').update(options.identity).digest('hex')
    this.#fingerprint = `fp_${hash.slice(0, 10)}`
  }

  generate(request: GenerateRequest, call: EngineCall): AsyncIterable<GenerateEvent> {
    return this.#turns.stream(call, () => {
      const own = this.#withinContext(this.#toOwn(request, call))
      return this.#api.generate(own, this.#clientFor(call), call, {
        fingerprint: this.#fingerprint,
        estimatedInputTokens: estimatePromptTokens(request),
      })
    })
  }

  /** Without a tokenizer, this is an estimate. */
  async countTokens(request: GenerateRequest, call: EngineCall): Promise<number> {
    const own = this.#toOwn(request, call)
    const count = await this.#api.countTokens?.(own, this.#clientFor(call), call)
    if (count === undefined) await this.#models.expect(own.model)
    return count ?? estimatePromptTokens(request)
  }

  /** Each token stands for at least one byte, or for a part of an image. */
  async boundTokens(request: GenerateRequest, call: EngineCall): Promise<number> {
    if (this.#api.countsExactly) return this.countTokens(request, call)
    const { input } = request
    const messages = input.kind === 'infill' ? 0 : (input.messages?.length ?? 0)
    const bound = measureTextBytes(request) + maxMarkupTokens * (messages + 2) + boundImageTokens(input)
    return Math.min(bound, this.#models.contextSizeOf(request.model) || bound)
  }

  seesImages({ model }: GenerateRequest): boolean {
    return this.#models.capabilitiesOf(model)?.includes('vision') ?? true
  }

  async embed(request: EmbedRequest, call: EngineCall): Promise<Embeddings> {
    const { embed } = this.#api
    if (!embed) throw unsupportedByUpstream('embeddings', 'model')
    const own = this.#toOwn(request, call)
    return this.#turns.run(call, () => embed.call(this.#api, own, this.#clientFor(call), call))
  }

  async rerank(request: RerankRequest, call: EngineCall): Promise<Ranking> {
    const { rerank } = this.#api
    if (!rerank) throw unsupportedByUpstream('reranking', 'model')
    const own = this.#toOwn(request, call)
    return this.#turns.run(call, () => rerank.call(this.#api, own, this.#clientFor(call), call))
  }

  async render(request: GenerateRequest, call: EngineCall): Promise<string> {
    if (!this.#api.render) throw unsupportedByUpstream('rendering of prompts', 'model')
    return this.#api.render(this.#toOwn(request, call), this.#clientFor(call), call)
  }

  async tokenize(request: TokenizeRequest, call: EngineCall): Promise<readonly number[]> {
    if (!this.#api.tokenize) throw unsupportedByUpstream('a tokenizer', 'model')
    return this.#api.tokenize(this.#toOwn(request, call), this.#clientFor(call), call)
  }

  async detokenize(request: DetokenizeRequest, call: EngineCall): Promise<string> {
    if (!this.#api.detokenize) throw unsupportedByUpstream('a tokenizer', 'model')
    return this.#api.detokenize(this.#toOwn(request, call), this.#clientFor(call), call)
  }

  async tokenPieces(request: DetokenizeRequest, call: EngineCall): Promise<readonly TokenPiece[]> {
    if (!this.#api.tokenPieces) throw unsupportedByUpstream('the text of each token', 'with_pieces')
    return this.#api.tokenPieces(this.#toOwn(request, call), this.#clientFor(call), call)
  }

  async load(model: string, options: LoadOptions, call: EngineCall): Promise<void> {
    const found = await this.#models.find(model)
    if (!found) throw modelNotFound(model)
    await this.#api.load?.(found.name, options, this.#clientFor(call), call)
    this.#used.add(found.name)
  }

  async unload(model: string): Promise<void> {
    const found = await this.#models.expect(model)
    if (!found) return
    const signal = AbortSignal.timeout(unloadTimeoutMs)
    await this.#api.unload?.(found.name, this.#clientFor({ signal }), signal)
    this.#used.delete(found.name)
  }

  async deletePromptStates(tenant: string): Promise<number> {
    const signal = AbortSignal.timeout(unloadTimeoutMs)
    return (await this.#api.deletePromptStates?.(this.#clientFor({ tenant, signal }), signal)) ?? 0
  }

  loaded(): readonly LoadedModel[] {
    return [...this.#used].map((name) => ({
      ...{ name, state: 'ready', sizeBytes: 0, gpuBytes: 0, expiresAt: 'never' },
      contextSize: this.#models.contextSizeOf(name),
    }))
  }

  findModel(name: string): Promise<Model | undefined> {
    return this.#models.find(name)
  }

  /** Returns a model if it is known without a request. */
  knownModel(name: string): Model | undefined {
    return this.#models.known(name)
  }

  /** Resolves if the server answers. Rejects with an `LlmError`, or with the reason of the signal. */
  probe(path: string, signal: AbortSignal): Promise<void> {
    return this.#client.probe(path, signal)
  }

  listModels(): Promise<readonly Model[]> {
    return this.#models.list()
  }

  /** Resolves if the server answers with its list of models, or has none. */
  async #expectAnswer(signal: AbortSignal): Promise<void> {
    try {
      await this.#api.listModels(this.#client, signal)
    } catch (error) {
      if (LlmError.is(error) && (error.code === 'not_found' || error.code === 'invalid_request')) return
      throw error
    }
  }

  async details(model: Model): Promise<ModelDetails> {
    const known = model.details ?? (await this.#models.find(model.name))?.details
    if (!known) throw invalidRequest(`The upstream server has no model "${model.name}".`)
    return known
  }

  close(): Promise<void> {
    this.#turns.close()
    return this.#client.close()
  }

  /** Lowers a limit of tokens that no answer can reach, since vLLM rejects it. Many clients send a limit of another model. */
  #withinContext(request: GenerateRequest): GenerateRequest {
    const { model, maxTokens, defaultMaxTokens, load } = request
    const known = this.#models.contextSizeOf(model)
    // Ollama may load the model with the larger context that the request asks for.
    const contextSize = Math.max(known, load?.contextSize ?? 0)
    const limit = maxTokens ?? defaultMaxTokens ?? 0
    if (known === 0 || limit <= contextSize || limit === unlimitedTokens) return request
    return { ...request, maxTokens: contextSize }
  }

  #clientFor(call: EngineCall): UpstreamClient {
    return this.#forwardsTenants ? this.#client.withHeaders(toForwardedHeaders(call)) : this.#client
  }

  /**
   * Gives the model the server's name, and remembers that a call uses it. A name that is not known goes to the server as it is,
   * unless the app names its models.
   */
  #toOwn<Request extends { readonly model: string }>(request: Request, call: EngineCall): Request {
    // The store may have found the model by another spelling.
    const found = call.model && this.#models.known(call.model.name)
    const model = found ?? this.#models.allowed(request.model)
    if (!model) return request
    this.#used.add(model.name)
    return { ...request, model: model.name }
  }
}
