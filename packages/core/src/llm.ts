/** The object that users hold, and the only file that knows all the parts. */

import { type Access, createAccess } from './accounts/auth/access.ts'
import type { Caller } from './accounts/auth/caller.ts'
import { parseCaller } from './accounts/auth/parse-caller.ts'
import { type Keys, openKeys } from './accounts/keys/keys.ts'
import type { NonInferenceKind } from './accounts/usage/metering.ts'
import { openMetering, type UsageReports } from './accounts/usage/open-metering.ts'
import { type ChatOptions, type ChatPrompt, streamText, toChatRequest } from './calls/chat.ts'
import { type CallOptions, type Generation, generate, tenantOf } from './calls/generate.ts'
import { ModelfileDefaultsResolver } from './calls/modelfile-defaults.ts'
import { type PoolingInput, read, type WithLimitStatus } from './calls/read.ts'
import type { Embeddings, EmbedRequest, Ranking, RerankRequest } from './engine/embeddings.ts'
import type { Engine, EngineCall } from './engine/engine.ts'
import { collect, type GenerateResult } from './engine/events.ts'
import { LocalEngine } from './engine/local/local-engine.ts'
import type { GenerateRequest, LoadOptions } from './engine/request.ts'
import type { DetokenizeRequest, TokenizeRequest } from './engine/tokens.ts'
import { invalidRequest, type LimitStatus, LlmError } from './errors.ts'
import { expectCredential } from './http/credential.ts'
import type { RateLimiter, Subject } from './limits/limits.ts'
import { createErrorReporter } from './logger.ts'
import { findBuiltInModel } from './models/built-in.ts'
import { createModelFilter, modelNotAllowed } from './models/model-filter.ts'
import { expectSource, type ModelSource } from './models/ollama-store/standalone-files.ts'
import { ModelStore } from './models/store.ts'
import type { AdaptedModel } from './options/models.ts'
import { type LlmOptions, resolveOptions } from './options.ts'
import type { Database } from './storage/database.ts'
import { openDatabase } from './storage/open.ts'

export interface Llm {
  /** The road that all answers take. Throws `LlmError`. */
  generate(request: GenerateRequest, call: CallOptions): Promise<Generation>
  /** How many tokens the prompt of a request has. Nothing is answered. Throws `LlmError`. */
  countTokens(request: GenerateRequest, call: EngineCall): Promise<number>
  /**
   * One answer, without HTTP. With `stream: true`, its text piece by piece.
   * Throws `LlmError`; rejects with an `AbortError` when `signal` aborts, while a stream just ends.
   */
  chat(input: ChatPrompt, options: ChatOptions & { readonly stream: true }): AsyncIterable<string>
  chat(input: ChatPrompt, options?: ChatOptions & { readonly stream?: false }): Promise<GenerateResult>
  /** The prompt of a request, as the model's template makes it. Throws `LlmError`. */
  render(request: GenerateRequest, call: EngineCall): Promise<string>
  /**
   * Vectors of texts, such as `{ inputs: ['Hello'] }`. Rejects with an `AbortError` when `signal` aborts; throws
   * `LlmError`, also where the model makes none.
   */
  embed(request: ModelOptional<EmbedRequest>, call?: UnaryCallOptions): Promise<WithLimitStatus<Embeddings>>
  /** How well documents answer a query. Rejects and throws like `embed`. */
  rerank(request: ModelOptional<RerankRequest>, call?: UnaryCallOptions): Promise<WithLimitStatus<Ranking>>
  /** A text as a model reads it. Rejects and throws like `embed`. */
  tokenize(request: ModelOptional<TokenizeRequest>, call?: UnaryCallOptions): Promise<readonly number[]>
  /** The text of tokens. Rejects and throws like `embed`. */
  detokenize(request: ModelOptional<DetokenizeRequest>, call?: UnaryCallOptions): Promise<string>
  /** Loads a model before it is asked. Throws `LlmError`. */
  load(model: string, options?: LoadOptions & Partial<EngineCall>): Promise<void>
  /** Frees the memory of a model, when its running answers have ended. Throws `not_found`. */
  unload(model: string): Promise<void>
  readonly models: Pick<
    ModelStore,
    'list' | 'get' | 'details' | 'create' | 'copy' | 'delete' | 'pull' | 'push' | 'prune' | 'blobs'
  >
  readonly loaded: Engine['loaded']
  /** API keys. Its methods reject with a `TypeError` where the options name no `database`, and nothing needs one. */
  readonly keys: Keys
  /** What was used and what it cost. Rejects with a `TypeError` where there is no database. */
  readonly usage: UsageReports
  /** The limits of callers and models; for routes of the app, too. */
  readonly limits: CallerLimits
  /**
   * Whose API key a request to a route of the app brings, for its limits: `rateLimit(llm.limits, { subject: llm.keySubject })`. What its
   * key may do in a minute it may do here and there together; where the key says nothing, the route's limits are its own.
   * Throws `authentication`.
   */
  keySubject(request: WithHeaders): Promise<Subject>
  /**
   * Lets in what no model answers, under requests per minute of its own: as many as the caller has for answers. Throws `rate_limit`.
   * For dialects.
   */
  admit(caller: Caller, kind: NonInferenceKind): Promise<readonly LimitStatus[]>
  /** Who may call the routes. */
  readonly access: Access
  /** Tells the logger of an error that clients cannot help. For dialects and adapters. */
  report(error: LlmError): void
  /** Ends what runs, and the model process with it. */
  close(): Promise<void>
}

/** A request of Node, Express or Nest, or the context of Koa. */
export interface WithHeaders {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
}

export interface CallerLimits extends RateLimiter {
  /**
   * How the limits per minute stand of a caller, or of a key: `llm.limits.of(await llm.keys.get(id))`. Empty where it has none; nothing
   * is taken. Rejects with `LlmError`.
   */
  of(caller: Pick<Caller, 'id' | 'limits' | 'tier'>): Promise<readonly LimitStatus[]>
}

/** Without a name it is the model that `chat()` takes. */
export type ModelOptional<Request extends { readonly model: string }> = Omit<Request, 'model'> &
  Partial<Pick<Request, 'model'>>

/** A call whose answer comes whole. */
export type UnaryCallOptions = Partial<Omit<CallOptions, 'stream'>>

/** Puts the parts together. Nothing is loaded, and no process started, before the first call that needs it. */
export async function createLlm(options: LlmOptions = {}): Promise<Llm> {
  const resolved = resolveOptions(options)
  const { models: paths, store, local, engine: givenEngine, logger } = resolved
  const sources = paths.map(toSource)
  if (options.models !== undefined) await Promise.all(sources.map(expectSource))
  const builtIn = await findBuiltInModel()
  const models = new ModelStore([...sources, ...(builtIn ? [builtIn] : [])], store)
  const engine =
    givenEngine ??
    new LocalEngine(models, {
      ...local,
      warn: (message) => logger?.warn({}, message),
      debug: (details, message) => logger?.debug?.(details, message),
    })

  const report = createErrorReporter(logger)
  const database = resolved.database === undefined ? undefined : await openDatabase(resolved.database)
  const { keys, access, metering, limits, usage, ...accounting } = await closeOnFailure(
    database,
    async () => {
      const keys = await openKeys(database, options.tiers && Object.keys(options.tiers))
      const metered = await openMetering(database, {
        ...resolved.metering,
        namesOf: async () => new Map((await keys.list()).map(({ id, name }) => [id, name])),
        onError: (cause) => report(LlmError.from(cause)),
      })
      return {
        keys,
        access: createAccess(resolved.access, (secret) => keys.authenticate(secret)),
        ...metered,
      }
    },
  )

  const modelfileDefaults = new ModelfileDefaultsResolver(models, {
    maxContextSize: local.maxContextSize,
    logger,
  })

  /** Who asks, as the app names the caller in process, too. Throws `permission` for a model that the caller may not use. */
  const checkCall = <Call extends { readonly caller?: Caller }>(call: Call, model: string): Call => {
    if (call.caller === undefined) return call
    const caller = parseCaller(call.caller)
    if (!createModelFilter(caller.models)(model)) throw modelNotAllowed(model)
    if (caller.spendLimit && !database) throw spendingNeedsDatabase()
    return { ...call, caller }
  }

  const generateFor = async (request: GenerateRequest, options: CallOptions): Promise<Generation> => {
    const call = checkCall(options, request.model)
    const { request: prepared, model } = await modelfileDefaults.prepare(request)
    const { signal, caller } = call
    const group = call.group && (await modelfileDefaults.together(call.group))
    const start = (signal: AbortSignal) =>
      generate(engine, prepared, { ...call, signal, ...(group && { group }) }, metering, model)
    return database && caller?.key ? keys.during(caller.key.id, signal, start) : start(signal)
  }

  const resolveModelName = async (model: string | undefined): Promise<string> => {
    // An engine of the user's own may need no model at all.
    const name = model ?? (await defaultModel(models)) ?? (givenEngine && 'default')
    if (!name) throw modelRequired()
    return name
  }

  const completeRequest = async <Request extends ModelRequest>(
    request: ModelOptional<Request>,
    { signal = new AbortController().signal, ...options }: UnaryCallOptions,
  ) => {
    const model = await resolveModelName(request.model)
    const call = checkCall(options, model)
    const { load, model: name } = await modelfileDefaults.loadOf(model, request.load)
    return { whole: { ...request, model, ...(load && { load }) } as Request, call: { ...call, signal }, name }
  }

  /** Asks the engine for something that nobody counts. */
  const callUnmetered =
    <Request extends ModelRequest, Result>(method: (request: Request, call: EngineCall) => Promise<Result>) =>
    async (request: ModelOptional<Request>, options: UnaryCallOptions = {}): Promise<Result> => {
      const { whole, call } = await completeRequest<Request>(request, options)
      return method(whole, toEngineCall(call))
    }

  /** Asks the engine for something that comes of texts that it has to read. */
  const callMetered =
    <Request extends ModelRequest, Result extends { readonly inputTokens: number }>(
      method: (request: Request, call: EngineCall) => Promise<Result>,
      textsOf: (request: Request) => PoolingInput['texts'],
    ) =>
    async (
      request: ModelOptional<Request>,
      options: UnaryCallOptions = {},
    ): Promise<WithLimitStatus<Result>> => {
      const { whole, call, name } = await completeRequest<Request>(request, options)
      return read({ model: name, texts: textsOf(whole) }, call, metering, () =>
        method(whole, toEngineCall(call)),
      )
    }

  const startChat = async (
    input: ChatPrompt,
    { model, signal = new AbortController().signal, caller, ...options }: ChatOptions,
    stream: boolean,
  ) =>
    generateFor(toChatRequest(input, await resolveModelName(model), options), {
      signal,
      stream,
      ...(caller && { caller }),
    })

  function chat(input: ChatPrompt, options: ChatOptions & { readonly stream: true }): AsyncIterable<string>
  function chat(
    input: ChatPrompt,
    options?: ChatOptions & { readonly stream?: false },
  ): Promise<GenerateResult>
  function chat(
    input: ChatPrompt,
    options: ChatOptions & { readonly stream?: boolean } = {},
  ): AsyncIterable<string> | Promise<GenerateResult> {
    const { stream = false, ...call } = options
    if (!stream) return startChat(input, call, false).then(collect)
    return streamText((signal) => startChat(input, { ...call, signal }, true), call.signal)
  }

  return {
    generate: generateFor,
    countTokens: async (request, call) =>
      engine.countTokens((await modelfileDefaults.prepare(request)).request, call),
    render: async (request, call) => engine.render((await modelfileDefaults.prepare(request)).request, call),
    embed: callMetered(
      (request: EmbedRequest, call) => engine.embed(request, call),
      ({ inputs }) => inputs,
    ),
    rerank: callMetered(
      (request: RerankRequest, call) => engine.rerank(request, call),
      ({ query, documents }) => documents.map((document) => query + document),
    ),
    tokenize: callUnmetered((request: TokenizeRequest, call) => engine.tokenize(request, call)),
    detokenize: callUnmetered((request: DetokenizeRequest, call) => engine.detokenize(request, call)),
    load: async (model, { signal = new AbortController().signal, ...loadOptions } = {}) =>
      engine.load(model, (await modelfileDefaults.loadOf(model, loadOptions)).load ?? {}, { signal }),
    unload: (model) => engine.unload(model),
    chat,
    models,
    loaded: () => engine.loaded(),
    keys,
    usage,
    limits: {
      limits: limits.limits,
      reserve: (subjects, cost) => limits.reserve(subjects, cost),
      status: (subjects) => limits.status(subjects),
      of: async ({ id, limits: own, tier }) => {
        const subject = metering.subjectOf(parseCaller({ id, limits: own, tier }))
        return subject.limits ? limits.status([subject]) : []
      },
    },
    keySubject: async ({ headers }) => {
      const secret = expectCredential({ header: (name) => headers[name]?.toString() })
      return metering.subjectOf(await keys.authenticate(secret))
    },
    admit: (caller, kind) => metering.admit(caller, kind),
    access,
    report,
    close: async () => {
      // What runs is charged for what it has said, and says no more.
      await metering.close()
      await engine.close()
      await keys.close()
      await accounting.close()
      await database?.close()
    },
  }
}

/** A database that nobody gets to hold is closed again; a pool of the app's stays open. */
async function closeOnFailure<Opened>(
  database: Database | undefined,
  open: () => Promise<Opened>,
): Promise<Opened> {
  try {
    return await open()
  } catch (cause) {
    await database?.close().catch(() => {})
    throw cause
  }
}

/** What every request of a model has. */
interface ModelRequest {
  readonly model: string
  readonly load?: LoadOptions
}

const toEngineCall = ({ signal, caller, background = false }: CallOptions): EngineCall => ({
  signal,
  tenant: tenantOf(caller),
  background,
})

const toSource = (given: string | AdaptedModel): ModelSource =>
  typeof given === 'string'
    ? { path: given }
    : {
        name: given.name,
        path: given.file,
        adapters: given.adapters.map(({ file, scale = 1 }) => ({ path: file, scale })),
      }

/** The user's own model if there is just one, the built-in one if there is none. */
async function defaultModel(models: ModelStore): Promise<string | undefined> {
  const all = await models.list()
  const own = all.filter(({ isBuiltIn }) => !isBuiltIn)
  const candidates = own.length > 0 ? own : all
  return candidates.length === 1 ? candidates[0]?.name : undefined
}

const spendingNeedsDatabase = (): LlmError =>
  new LlmError(
    'internal',
    'In the app, a caller with `spendLimit` needs the option `database` of createLlm().',
    {
      setup: true,
    },
  )

const modelRequired = (): LlmError =>
  invalidRequest('Say which model to use, or put exactly one GGUF file into the folder of models.', {
    param: 'model',
  })
