/** What one caller can ask of an `Llm`: the allow-listed surface that dialects get. A method that is not listed here does not exist for them. */
import type { Caller } from '../accounts/auth/caller.ts'
import type { Embeddings, EmbedRequest, Ranking, RerankRequest } from '../engine/embeddings.ts'
import type { Engine, EngineCall, LoadedModel } from '../engine/engine.ts'
import type { GenerateRequest, LoadOptions } from '../engine/request.ts'
import type { DetokenizeRequest, TokenizeRequest } from '../engine/tokens.ts'
import { invalidRequest, type LimitStatus } from '../errors.ts'
import { createModelFilter, modelNotAllowed } from '../models/model-filter.ts'
import type { ModelStore } from '../models/store.ts'
import type { CallKind, CallOptions, EngineRequest } from './call.ts'
import type { Generation } from './generation.ts'
import type { GenerationGroup } from './group.ts'
import type { CallPipeline, WithLimitStatus } from './pipeline.ts'

/** Without a name, the model that `chat()` takes. */
export type ModelOptional<Request extends { readonly model: string }> = Omit<Request, 'model'> &
  Partial<Pick<Request, 'model'>>

/** As `CallOptions`, for a caller that is known. */
export type ClientCallOptions = Omit<CallOptions, 'caller' | 'dialect'>
export type ClientUnaryOptions = Partial<Omit<ClientCallOptions, 'stream'>>

export type ModelActions = Pick<
  ModelStore,
  'list' | 'get' | 'details' | 'create' | 'copy' | 'delete' | 'pull' | 'push' | 'prune' | 'blobs'
>

export interface LlmClient {
  /** Resolves when the answer has begun. Throws `LlmError`. */
  generate(request: ModelOptional<GenerateRequest>, options: ClientCallOptions): Promise<Generation>
  /** Several requests for one model that are one call: admitted, counted and charged together. Throws `LlmError`. */
  generateGroup(requests: readonly GenerateRequest[], options: ClientCallOptions): Promise<GenerationGroup>
  /** Tokens of the prompt of a request. Throws `LlmError`. */
  countTokens(request: GenerateRequest, options?: ClientUnaryOptions): Promise<number>
  /** The prompt of a request, as the model's template renders it. Throws `LlmError`. */
  render(request: GenerateRequest, options?: ClientUnaryOptions): Promise<string>
  embed(
    request: ModelOptional<EmbedRequest>,
    options?: ClientUnaryOptions,
  ): Promise<WithLimitStatus<Embeddings>>
  rerank(
    request: ModelOptional<RerankRequest>,
    options?: ClientUnaryOptions,
  ): Promise<WithLimitStatus<Ranking>>
  tokenize(request: ModelOptional<TokenizeRequest>, options?: ClientUnaryOptions): Promise<readonly number[]>
  detokenize(request: ModelOptional<DetokenizeRequest>, options?: ClientUnaryOptions): Promise<string>
  load(model: string, options?: LoadOptions & ClientUnaryOptions): Promise<void>
  unload(model: string): Promise<void>
  /** The caller's models that are loaded. */
  loaded(): readonly LoadedModel[]
  /** The caller's models in the store. */
  readonly models: ModelActions
  /** How the limits stood when this client's calls were admitted; of several calls, the one with the least left. */
  limitStatus(): readonly LimitStatus[]
}

/** The client of one request to a route. */
export interface RouteClient extends LlmClient {
  /** Takes one of the caller's requests to the admin API. Throws `rate_limit`. */
  admitAdmin(): Promise<void>
}

export interface ClientParts {
  readonly pipeline: CallPipeline
  readonly engine: Engine
  readonly models: ModelActions
  /** Rejects with `invalid_request` where there is no default. */
  readonly resolveDefaultModel: () => Promise<string>
}

/** @param caller checked; absent: the app itself, which comes under the limits of models only */
export function createClient(
  { pipeline, engine, models, resolveDefaultModel }: ClientParts,
  caller?: Caller,
  dialect?: string,
): RouteClient {
  const isAllowed = createModelFilter(caller?.models)
  const limitLog = new LimitLog()

  const toSettings = <Request extends EngineRequest>(
    kind: CallKind,
    requests: readonly Request[],
    { signal = new AbortController().signal, background, batch }: ClientUnaryOptions,
  ) => ({
    ...{ kind, requests, signal },
    ...(caller && { caller }),
    ...(dialect !== undefined && { dialect }),
    ...(background && { background }),
    ...(batch && { batch }),
    onLimits: limitLog.add,
  })

  const withModel = async <Request extends EngineRequest>(
    request: ModelOptional<Request>,
  ): Promise<Request> => {
    if (request.model !== undefined) return request as unknown as Request
    return { ...request, model: await resolveDefaultModel() } as unknown as Request
  }

  const runUnary =
    <Request extends EngineRequest, Result>(
      kind: CallKind,
      method: (request: Request, call: EngineCall) => Promise<Result>,
    ) =>
    async (request: ModelOptional<Request>, options: ClientUnaryOptions = {}) =>
      pipeline.run(toSettings(kind, [await withModel<Request>(request)], options), method)

  /** Results that are no objects are passed in one. */
  const runForValue = <Request extends EngineRequest, Value>(
    kind: CallKind,
    method: (request: Request, call: EngineCall) => Promise<Value>,
  ) => {
    const run = runUnary<Request, { readonly value: Value }>(kind, async (request, call) => ({
      value: await method(request, call),
    }))
    return async (request: ModelOptional<Request>, options?: ClientUnaryOptions): Promise<Value> =>
      (await run(request, options)).value
  }

  return {
    generate: async (request, options) => {
      const requests = [await withModel<GenerateRequest>(request)]
      return pipeline.generate(toSettings('generate', requests, options), options.stream ?? false)
    },
    generateGroup: (requests, options) => {
      if (requests.length === 0) throw invalidRequest('Expected at least one prompt.')
      return pipeline.generateGroup(toSettings('generate', requests, options), options.stream ?? false)
    },
    countTokens: runForValue('count', (request: GenerateRequest, call) => engine.countTokens(request, call)),
    render: runForValue('render', (request: GenerateRequest, call) => engine.render(request, call)),
    embed: runUnary('embed', (request: EmbedRequest, call) => engine.embed(request, call)),
    rerank: runUnary('rerank', (request: RerankRequest, call) => engine.rerank(request, call)),
    tokenize: runForValue('tokenize', (request: TokenizeRequest, call) => engine.tokenize(request, call)),
    detokenize: runForValue('detokenize', (request: DetokenizeRequest, call) =>
      engine.detokenize(request, call),
    ),
    load: async (model, { signal, background, batch, ...load } = {}) => {
      const options = {
        ...(signal && { signal }),
        ...(background && { background }),
        ...(batch && { batch }),
      }
      await runForValue('load', (request: EngineRequest, call) =>
        engine.load(request.model, request.load ?? {}, call),
      )({ model, load }, options)
    },
    unload: (model) =>
      runForValue('unload', (request: EngineRequest) => engine.unload(request.model))({ model }),
    loaded: () => engine.loaded().filter(({ name }) => isAllowed(name)),
    models: caller?.models ? restrictModels(models, isAllowed) : listModelActions(models),
    limitStatus: () => limitLog.status(),
    admitAdmin: async () => {
      await pipeline.run(toSettings('admin', [], {}), async () => ({}))
    },
  }
}

const listModelActions = (models: ModelActions): ModelActions => ({
  list: () => models.list(),
  get: (name) => models.get(name),
  details: (model, options) => models.details(model, options),
  copy: (from, to, options) => models.copy(from, to, options),
  delete: (name) => models.delete(name),
  create: (spec, options) => models.create(spec, options),
  pull: (name, options) => models.pull(name, options),
  push: (name, options) => models.push(name, options),
  prune: () => models.prune(),
  blobs: models.blobs,
})

/** Rejects also models that do not exist: an error must not tell which models there are. */
function restrictModels(models: ModelActions, isAllowed: (name: string) => boolean): ModelActions {
  const expect = (...names: readonly (string | undefined)[]): void => {
    for (const name of names) if (name !== undefined && !isAllowed(name)) throw modelNotAllowed(name)
  }
  return {
    ...listModelActions(models),
    list: async () => (await models.list()).filter(({ name }) => isAllowed(name)),
    get: async (name) => {
      expect(name)
      return models.get(name)
    },
    details: async (model, options) => {
      expect(typeof model === 'string' ? model : model.name)
      return models.details(model, options)
    },
    copy: async (from, to, options) => {
      expect(from, to)
      return models.copy(from, to, options)
    },
    delete: async (name) => {
      expect(name)
      return models.delete(name)
    },
    create: (spec, options) => {
      expect(spec.name, spec.from)
      return models.create(spec, options)
    },
    pull: (name, options) => {
      expect(name)
      return models.pull(name, options)
    },
    push: (name, options) => {
      expect(name)
      return models.push(name, options)
    },
  }
}

/** By name of the limit, the state with the least left. */
class LimitLog {
  readonly #least = new Map<LimitStatus['name'], { readonly status: LimitStatus; readonly at: number }>()

  readonly add = (limits: readonly LimitStatus[]): void => {
    const at = performance.now()
    for (const status of limits) {
      const other = this.#least.get(status.name)
      if (!other || status.remaining < other.status.remaining) this.#least.set(status.name, { status, at })
    }
  }

  /** As of now: a whole answer may have taken minutes. */
  status(): readonly LimitStatus[] {
    return [...this.#least.values()].map(({ status, at }) => ({
      ...status,
      resetMs: Math.max(0, Math.ceil(status.resetMs - (performance.now() - at))),
    }))
  }
}
