/** The methods of an `Llm` that one caller may use. Dialects get this client instead of the engine. */
import { type Caller, tenantOf } from '../accounts/auth/caller.ts'
import type { BatchActions } from '../batches/batch-actions.ts'
import { publish } from '../diagnostics/channels.ts'
import type { Embeddings, EmbedRequest, Ranking, RerankRequest } from '../engine/embeddings.ts'
import type { Engine, EngineCall, LoadedModel } from '../engine/engine.ts'
import type { LoadProgress } from '../engine/events.ts'
import type { GenerateRequest, LoadOptions } from '../engine/request.ts'
import type { DetokenizeRequest, TokenizeRequest, TokenPiece } from '../engine/tokens.ts'
import { invalidRequest, type LimitStatus } from '../errors.ts'
import { createModelFilter } from '../models/model-filter.ts'
import {
  hasFallbackCode,
  type ModelResolver,
  type ResolvedModel,
  resolveAllowed,
} from '../models/model-resolver.ts'
import type { ResponseStore, TenantResponses } from '../response-store/response-store.ts'
import type { BatchItemCall, CallOptions, CallSettings, ForwardedCall, ModelRequest } from './call.ts'
import type { OnToolEnd } from './chat/tools.ts'
import type { Generation } from './generation.ts'
import type { GenerationGroup } from './group.ts'
import type { CallKind } from './kind.ts'
import {
  type ModelActions,
  type Resolver,
  restrictModels,
  type StoreActions,
  withResolver,
} from './models/model-actions.ts'
import type { CallPipeline, WithLimitStatus } from './pipeline.ts'
import type { Shutdown } from './shutdown.ts'

/** A request whose `model` is optional. The default is the model that `chat()` uses. */
export type ModelOptional<Request extends { readonly model: string }> = Omit<Request, 'model'> &
  Partial<Pick<Request, 'model'>>

/** Options of a call through a client, which sets `caller` and `dialect` itself. */
export type ClientCallOptions = Omit<CallOptions, 'caller' | 'dialect'>
export interface GroupOptions extends ClientCallOptions {
  /** Number of consecutive requests that share a prompt. The prompt is charged once. @default 1 */
  readonly answersPerPrompt?: number
}
export type ClientUnaryOptions = Omit<ClientCallOptions, 'stream'>

export interface LoadProgressOption {
  /** Called while the model loads, and not if it is loaded. `load()` rejects with what it throws. */
  readonly onProgress?: ((progress: LoadProgress) => void) | undefined
}

export interface LlmClient {
  /** Generates one answer. Resolves when the answer begins. Throws `LlmError`. */
  generate(request: ModelOptional<GenerateRequest>, options?: ClientCallOptions): Promise<Generation>
  /**
   * Runs several requests for one model as one call, which is admitted and charged once. Throws `LlmError`.
   */
  generateGroup(requests: readonly GenerateRequest[], options?: GroupOptions): Promise<GenerationGroup>
  /** Counts the tokens of a request's prompt. Throws `LlmError`. */
  countTokens(request: ModelOptional<GenerateRequest>, options?: ClientUnaryOptions): Promise<number>
  /** Renders a request's prompt with the model's template. Throws `LlmError`. */
  render(request: ModelOptional<GenerateRequest>, options?: ClientUnaryOptions): Promise<string>
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
  load(model: string, options?: LoadOptions & LoadProgressOption & ClientUnaryOptions): Promise<void>
  unload(model: string): Promise<void>
  /** Loaded models that the caller may use. */
  loaded(): readonly LoadedModel[]
  /** The model store, restricted to the models that the caller may use. */
  readonly models: ModelActions
  /** The batches and files of the caller's tenant. */
  readonly batches: BatchActions
  /**
   * Returns the status that the limits had when this client's calls were admitted or rejected. After several
   * calls, returns for each limit the status with the lowest `remaining`.
   */
  limitStatus(): readonly LimitStatus[]
}

export interface InputTokensOption {
  /** Called with the tokens of each text when the model has evaluated it. */
  readonly onInputTokens?: ((tokens: number) => void) | undefined
}

/** The client of one request to a route. */
export interface RouteClient extends LlmClient {
  embed(
    request: ModelOptional<EmbedRequest>,
    options?: ClientUnaryOptions & InputTokensOption,
  ): Promise<WithLimitStatus<Embeddings>>
  rerank(
    request: ModelOptional<RerankRequest>,
    options?: ClientUnaryOptions & InputTokensOption,
  ): Promise<WithLimitStatus<Ranking>>
  /** Counts the tokens of a prompt that would be read from the prompt cache now. Throws `LlmError`. */
  countCachedTokens(request: GenerateRequest, options?: ClientUnaryOptions): Promise<number>
  /** Deletes the KV states of the caller's tenant, and returns their number. */
  deletePromptStates(): Promise<number>
  /** Counts as `detokenize`. Rejects with an `LlmError` `invalid_request` for an engine that has no pieces. */
  tokenPieces(request: DetokenizeRequest, options?: ClientUnaryOptions): Promise<readonly TokenPiece[]>
  /** The stored responses of the caller's tenant. Undefined if the app stores none. */
  readonly responses: TenantResponses | undefined
  /**
   * Counts one request to the admin API, or to the routes of batches, files and stored responses, against the caller's
   * limit of requests. Each of the two has a separate count. Throws an `LlmError` `rate_limit`.
   */
  admitRequest(kind: 'admin' | 'storage'): Promise<void>
}

/** Several answers that are one piece of work for a shutdown, such as a tool loop. */
export interface AdmittedWork extends Pick<LlmClient, 'generate'> {
  /** Aborts at the deadline of a shutdown. Its reason is an `LlmError`. */
  readonly stopped: AbortSignal
  /** Publishes that a tool has run. */
  readonly onToolEnd: OnToolEnd
  /** Must be called at the end of the work, for which the shutdown waits. */
  leave(): void
}

export interface ClientParts {
  readonly pipeline: CallPipeline
  readonly shutdown: Pick<Shutdown, 'admit'>
  readonly engine: Engine
  readonly models: StoreActions
  readonly resolver: Resolver & Pick<ModelResolver, 'resolveTargets'>
  /** Returns the object of `createLlm()`, for the events of the diagnostics channels. */
  readonly llmOf: () => object
  /** Undefined if the app stores no responses. */
  readonly responses: ResponseStore | undefined
  readonly batchesFor: (caller: Caller | undefined) => BatchActions
  /** Rejects with an `LlmError` `invalid_request` if there is no default model. */
  readonly resolveDefaultModel: () => Promise<string>
}

export interface ClientScope {
  /** A validated caller. Undefined for the host app itself, to which only the limits of models apply. */
  readonly caller?: Caller | undefined
  readonly dialect?: string | undefined
  /** The pattern of the route that received the request. */
  readonly route?: string | undefined
  readonly requestId?: string | undefined
  /** Returns a header of the request. */
  readonly header?: ((name: string) => string | undefined) | undefined
  /** Whether the client serves one HTTP request. If so, it looks each model up only once. */
  readonly isRequest?: boolean
  /** Closes the connection of a client that does not read its answer. */
  readonly disconnect?: (() => void) | undefined
  /** Set if the client runs an item of a batch. */
  readonly batchItem?: BatchItemCall | undefined
  /** Set if another app forwards the request. Its scope must allow this. */
  readonly forwarded?: ForwardedCall | undefined
}

export class CallerClient implements RouteClient {
  #models: ModelActions | undefined
  readonly #parts: ClientParts
  readonly #scope: ClientScope
  readonly #isAllowed: (name: string) => boolean
  readonly #limitLog = new LimitLog()
  readonly #resolveModel: (name: string) => Promise<ResolvedModel>

  constructor(parts: ClientParts, scope: ClientScope = {}) {
    const { caller, isRequest } = scope
    const resolve = (name: string): Promise<ResolvedModel> => parts.resolver.resolve(name)
    this.#parts = parts
    this.#scope = scope
    this.#isAllowed = createModelFilter(caller?.models)
    this.#resolveModel = isRequest ? memoizeLast(resolve) : resolve
  }

  get #tenant(): string {
    return this.#scope.forwarded?.tenant ?? tenantOf(this.#scope.caller)
  }

  get models(): ModelActions {
    this.#models ??= this.#createModels()
    return this.#models
  }

  get batches(): BatchActions {
    const { caller, forwarded } = this.#scope
    // They run later, and would count for the key.
    if (forwarded) throw invalidRequest('Batches and files cannot be forwarded.')
    return this.#parts.batchesFor(caller)
  }

  get responses(): TenantResponses | undefined {
    return this.#parts.responses?.forTenant(this.#tenant)
  }

  async generate(
    request: ModelOptional<GenerateRequest>,
    options: ClientCallOptions = {},
  ): Promise<Generation> {
    return this.#generate(request, options, this.#scope.isRequest)
  }

  /** Begins work whose later answers are admitted during a shutdown, too. Throws an `LlmError` `overloaded`. */
  beginWork(): AdmittedWork {
    const stopped = new AbortController()
    const leave = this.#parts.shutdown.admit({ stop: (reason) => stopped.abort(reason) })
    return {
      ...{ stopped: stopped.signal, leave, onToolEnd: this.#onToolEnd },
      generate: (request, options = {}) => this.#generate(request, options, true),
    }
  }

  async generateGroup(
    requests: readonly GenerateRequest[],
    options: GroupOptions = {},
  ): Promise<GenerationGroup> {
    const [first] = requests
    if (!first) throw invalidRequest('Expected at least one prompt.')
    if (requests.some(({ model }) => model !== first.model))
      throw invalidRequest('Expected the same model for all prompts.', { param: 'model' })
    return this.#parts.pipeline.generateGroup(
      { ...this.#toSettings('generate', requests, options), answersPerPrompt: options.answersPerPrompt },
      options.stream ?? false,
    )
  }

  async embed(
    request: ModelOptional<EmbedRequest>,
    options: ClientUnaryOptions & InputTokensOption = {},
  ): Promise<WithLimitStatus<Embeddings>> {
    const { pipeline, engine } = this.#parts
    const requests = [await this.#withModel<EmbedRequest>(request)]
    return this.#tryModels(this.#toSettings('embed', requests, options), (settings) =>
      pipeline.run(settings, (request, call) => engine.embed(request, watchInput(call, options))),
    )
  }

  async rerank(
    request: ModelOptional<RerankRequest>,
    options: ClientUnaryOptions & InputTokensOption = {},
  ): Promise<WithLimitStatus<Ranking>> {
    const { pipeline, engine } = this.#parts
    const requests = [await this.#withModel<RerankRequest>(request)]
    return this.#tryModels(this.#toSettings('rerank', requests, options), (settings) =>
      pipeline.run(settings, (request, call) => engine.rerank(request, watchInput(call, options))),
    )
  }

  countTokens(request: ModelOptional<GenerateRequest>, options?: ClientUnaryOptions): Promise<number> {
    return this.#runForValue('count', request, options, (engine) => engine.countTokens)
  }

  countCachedTokens(request: GenerateRequest, options?: ClientUnaryOptions): Promise<number> {
    return this.#runForValue('count', request, options, (engine) => engine.countCachedTokens ?? countNone)
  }

  async deletePromptStates(): Promise<number> {
    return (await this.#parts.engine.deletePromptStates?.(this.#tenant)) ?? 0
  }

  render(request: ModelOptional<GenerateRequest>, options?: ClientUnaryOptions): Promise<string> {
    return this.#runForValue('render', request, options, (engine) => engine.render)
  }

  tokenize(
    request: ModelOptional<TokenizeRequest>,
    options?: ClientUnaryOptions,
  ): Promise<readonly number[]> {
    return this.#runForValue('tokenize', request, options, (engine) => engine.tokenize)
  }

  detokenize(request: ModelOptional<DetokenizeRequest>, options?: ClientUnaryOptions): Promise<string> {
    return this.#runForValue('detokenize', request, options, (engine) => engine.detokenize)
  }

  tokenPieces(request: DetokenizeRequest, options?: ClientUnaryOptions): Promise<readonly TokenPiece[]> {
    return this.#runForValue('detokenize', request, options, (engine) => engine.tokenPieces ?? rejectPieces)
  }

  load(
    model: string,
    {
      signal,
      background,
      endUser,
      onProgress,
      ...load
    }: LoadOptions & LoadProgressOption & ClientUnaryOptions = {},
  ): Promise<void> {
    const options = {
      ...(signal && { signal }),
      ...(background && { background }),
      endUser,
    }
    return this.#runForValue(
      'load',
      { model, load },
      options,
      (engine) => (request: ModelRequest, call) =>
        watchLoad(call, onProgress, (watched) => engine.load(request.model, request.load ?? {}, watched)),
    )
  }

  unload(model: string): Promise<void> {
    return this.#runForValue(
      'unload',
      { model },
      {},
      (engine) => (request: ModelRequest) => engine.unload(request.model),
    )
  }

  loaded(): readonly LoadedModel[] {
    return this.#parts.engine.loaded().filter(({ name }) => this.#isAllowed(name))
  }

  limitStatus(): readonly LimitStatus[] {
    return this.#limitLog.status()
  }

  async admitRequest(kind: 'admin' | 'storage'): Promise<void> {
    await this.#parts.pipeline.run(this.#toSettings(kind, [], {}), async () => ({}))
  }

  /**
   * Runs a call whose result may be a number, string or list. The result is wrapped in an object for the
   * pipeline, which adds the field `limits` to each result.
   */
  async #runForValue<Request extends ModelRequest, Value>(
    kind: CallKind,
    request: ModelOptional<Request>,
    options: ClientUnaryOptions = {},
    methodOf: (engine: Engine) => (request: Request, call: EngineCall) => Promise<Value>,
  ): Promise<Value> {
    const { pipeline, engine } = this.#parts
    const requests = [await this.#withModel<Request>(request)]
    const { value } = await this.#tryModels(this.#toSettings(kind, requests, options), (settings) =>
      pipeline.run(settings, async (request, call) => ({
        value: await methodOf(engine).call(engine, request, call),
      })),
    )
    return value
  }

  async #generate(
    request: ModelOptional<GenerateRequest>,
    options: ClientCallOptions,
    isAdmitted: boolean | undefined,
  ): Promise<Generation> {
    const requests = [await this.#withModel<GenerateRequest>(request)]
    return this.#tryModels({ ...this.#toSettings('generate', requests, options), isAdmitted }, (settings) =>
      this.#parts.pipeline.generate(settings, options.stream ?? false),
    )
  }

  /**
   * Runs a call, and again with each fallback of its model until one answers. Each attempt is a call for interceptors and
   * events, but limits and the ledger count only the last one.
   */
  async #tryModels<Settings extends CallSettings, Result>(
    settings: Settings,
    run: (settings: Settings) => Promise<Result>,
  ): Promise<Result> {
    const { resolver } = this.#parts
    const requested = settings.requests[0]?.model
    let targets: readonly string[] | undefined
    for (;;) {
      let fallbacks: readonly string[] = []
      const attempt = { isPending: true, isReplaced: false }
      const resolveModel = async (name: string): Promise<ResolvedModel> => {
        // An interceptor that chooses another model chooses its fallbacks, too: none.
        if (name !== requested) return this.#resolveModel(name)
        const resolved = targets
          ? await resolver.resolveTargets(name, targets)
          : await this.#resolveModel(name)
        fallbacks = resolved.fallbacks?.filter(this.#isAllowed) ?? []
        return resolved
      }
      const isReplaced = (cause: unknown): boolean => {
        attempt.isReplaced = attempt.isPending && fallbacks.length > 0 && hasFallbackCode(cause)
        return attempt.isReplaced
      }
      try {
        return await run({ ...settings, resolveModel, isReplaced })
      } catch (cause) {
        if (!attempt.isReplaced) throw cause
        targets = fallbacks
      } finally {
        attempt.isPending = false
      }
    }
  }

  readonly #onToolEnd: OnToolEnd = ({ definition: { name, description } }, toolCallId, durationMs, error) =>
    publish('modelmount:tool:end', () => ({
      ...{ llm: this.#parts.llmOf(), name, description },
      ...{ toolCallId, durationMs, error },
    }))

  #toSettings<Request extends ModelRequest>(
    kind: CallKind,
    requests: readonly Request[],
    { signal = new AbortController().signal, background, endUser }: ClientUnaryOptions,
  ): CallSettings & { readonly requests: readonly Request[] } {
    const { caller, dialect, route, requestId, header, disconnect, batchItem, isRequest, forwarded } =
      this.#scope
    return {
      ...{ kind, requests, signal, endUser, resolveModel: this.#resolveModel, onLimits: this.#limitLog.add },
      ...(caller && { caller }),
      ...(dialect !== undefined && { dialect }),
      ...{ route, requestId, header },
      ...(disconnect && { disconnect }),
      ...(batchItem && { batchItem }),
      ...(forwarded && { forwarded }),
      ...(isRequest && { isAdmitted: true }),
      ...(background && { background }),
    }
  }

  #createModels(): ModelActions {
    const resolve = this.#resolveModel
    const isAllowed = this.#isAllowed
    const actions = withResolver(this.#parts.models, {
      resolve: (name) => resolveAllowed(name, resolve, isAllowed),
      listAliases: () => this.#parts.resolver.listAliases(),
    })
    return this.#scope.caller?.models ? restrictModels(actions, isAllowed) : actions
  }

  async #withModel<Request extends ModelRequest>(request: ModelOptional<Request>): Promise<Request> {
    const model = request.model ?? (await this.#parts.resolveDefaultModel())
    return { ...request, model } as unknown as Request
  }
}

/**
 * Caches the last result, but no error. The client of a request lives as long as its answer, and a cached
 * error would keep its stack in memory.
 */
function memoizeLast<Value>(compute: (key: string) => Promise<Value>): (key: string) => Promise<Value> {
  let last: { readonly key: string; readonly value: Promise<Value> } | undefined
  return (key) => {
    if (last?.key === key) return last.value
    const value = compute(key)
    last = { key, value }
    value.catch(() => {
      last = undefined
    })
    return value
  }
}

/** For each limit and window, the status with the lowest `remaining`. */
class LimitLog {
  #least: Map<string, { readonly status: LimitStatus; readonly at: number }> | undefined

  readonly add = (limits: readonly LimitStatus[]): void => {
    const at = performance.now()
    for (const status of limits) {
      this.#least ??= new Map()
      const key = `${status.name} ${status.windowMs}`
      const other = this.#least.get(key)
      if (!other || status.remaining < other.status.remaining) this.#least.set(key, { status, at })
    }
  }

  /** Subtracts the time since admission from `resetMs`, since a unary call may take minutes. */
  status(): readonly LimitStatus[] {
    return [...(this.#least?.values() ?? [])].map(({ status, at }) => ({
      ...status,
      resetMs: Math.max(0, Math.ceil(status.resetMs - (performance.now() - at))),
    }))
  }
}

const rejectPieces = async (): Promise<never> => {
  throw invalidRequest('This engine does not report the text of each token.', {
    param: 'with_pieces',
    issue: 'unsupported',
  })
}

const countNone = async (): Promise<number> => 0

/** Reports evaluated tokens to the reader, too. */
const watchInput = (call: EngineCall, { onInputTokens: report }: InputTokensOption): EngineCall =>
  report
    ? {
        ...call,
        onInputTokens: (tokens) => {
          call.onInputTokens?.(tokens)
          report(tokens)
        },
      }
    : call

/** Stops to wait for a load when `onProgress` throws, and throws its error. */
async function watchLoad(
  call: EngineCall,
  onProgress: LoadProgressOption['onProgress'],
  load: (call: EngineCall) => Promise<void>,
): Promise<void> {
  if (!onProgress) return load(call)
  const failed = new AbortController()
  const onBoth: EngineCall['onProgress'] = (progress) => {
    call.onProgress?.(progress)
    if (failed.signal.aborted || progress.phase !== 'load') return
    try {
      onProgress(progress)
    } catch (cause) {
      failed.abort(cause)
    }
  }
  try {
    await load({ ...call, onProgress: onBoth, signal: AbortSignal.any([call.signal, failed.signal]) })
  } finally {
    failed.signal.throwIfAborted()
  }
}
