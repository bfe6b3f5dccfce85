/** The object that users hold, and the only file that knows all the parts. */

import { type Access, createAccess } from './accounts/auth/access.ts'
import type { Caller } from './accounts/auth/caller.ts'
import { checkedCaller } from './accounts/auth/check-caller.ts'
import { type Keys, openKeys } from './accounts/keys/keys.ts'
import type { QuietKind } from './accounts/usage/metering.ts'
import { openMetering, type UsageReports } from './accounts/usage/open.ts'
import { type ChatOptions, type ChatPrompt, texts, toChatRequest } from './calls/chat.ts'
import { type CallOptions, type Generation, generate, tenantOf } from './calls/generate.ts'
import { Recipes } from './calls/modelfile-defaults.ts'
import { type Read, type Reading, read } from './calls/read.ts'
import type { Embeddings, EmbedRequest, Ranking, RerankRequest } from './engine/embeddings.ts'
import type { Engine, EngineCall } from './engine/engine.ts'
import { type Answer, collect } from './engine/events.ts'
import { LocalEngine } from './engine/local/local-engine.ts'
import type { GenerateRequest, LoadOptions } from './engine/request.ts'
import type { DetokenizeRequest, TokenizeRequest } from './engine/tokens.ts'
import { invalidRequest, type LimitStatus, LlmError } from './errors.ts'
import { expectCredential } from './http/credential.ts'
import type { RateLimiter, Subject } from './limits/limits.ts'
import { createReport } from './logger.ts'
import { allows, notAllowed } from './models/allowed.ts'
import { builtInModel } from './models/built-in.ts'
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
  chat(input: ChatPrompt, options?: ChatOptions & { readonly stream?: false }): Promise<Answer>
  /** The prompt of a request, as the model's template makes it. Throws `LlmError`. */
  render(request: GenerateRequest, call: EngineCall): Promise<string>
  /**
   * Vectors of texts, such as `{ inputs: ['Hello'] }`. Rejects with an `AbortError` when `signal` aborts; throws
   * `LlmError`, also where the model makes none.
   */
  embed(request: ModelOptional<EmbedRequest>, call?: QuietCall): Promise<Read<Embeddings>>
  /** How well documents answer a query. Rejects and throws like `embed`. */
  rerank(request: ModelOptional<RerankRequest>, call?: QuietCall): Promise<Read<Ranking>>
  /** A text as a model reads it. Rejects and throws like `embed`. */
  tokenize(request: ModelOptional<TokenizeRequest>, call?: QuietCall): Promise<readonly number[]>
  /** The text of tokens. Rejects and throws like `embed`. */
  detokenize(request: ModelOptional<DetokenizeRequest>, call?: QuietCall): Promise<string>
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
  admit(caller: Caller, kind: QuietKind): Promise<readonly LimitStatus[]>
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
export type QuietCall = Partial<Omit<CallOptions, 'stream'>>

/** Puts the parts together. Nothing is loaded, and no process started, before the first call that needs it. */
export async function createLlm(options: LlmOptions = {}): Promise<Llm> {
  const resolved = resolveOptions(options)
  const { models: paths, store, local, engine: given, logger } = resolved
  const sources = paths.map(toSource)
  if (options.models !== undefined) await Promise.all(sources.map(expectSource))
  const builtIn = await builtInModel()
  const models = new ModelStore([...sources, ...(builtIn ? [builtIn] : [])], store)
  const engine =
    given ??
    new LocalEngine(models, {
      ...local,
      warn: (message) => logger?.warn({}, message),
      debug: (details, message) => logger?.debug?.(details, message),
    })

  const report = createReport(logger)
  const database = resolved.database === undefined ? undefined : await openDatabase(resolved.database)
  const { keys, access, metering, limits, usage, ...closing } = await orClose(database, async () => {
    const keys = await openKeys(database, options.tiers && Object.keys(options.tiers))
    const metered = await openMetering(database, {
      ...resolved.metering,
      namesOf: async () => new Map((await keys.list()).map(({ id, name }) => [id, name])),
      onError: (cause) => report(LlmError.from(cause)),
    })
    return { keys, access: createAccess(resolved.access, (secret) => keys.authenticate(secret)), ...metered }
  })

  const recipes = new Recipes(models, { maxContextSize: local.maxContextSize, logger })

  /** Who asks, as the app names the caller in process, too. Throws `permission` for a model that the caller may not use. */
  const admitted = <Call extends { readonly caller?: Caller }>(call: Call, model: string): Call => {
    if (call.caller === undefined) return call
    const caller = checkedCaller(call.caller)
    if (!allows(caller.models)(model)) throw notAllowed(model)
    if (caller.spendLimit && !database) throw spendsNowhere()
    return { ...call, caller }
  }

  const answer = async (request: GenerateRequest, options: CallOptions): Promise<Generation> => {
    const call = admitted(options, request.model)
    const { request: asked, model } = await recipes.prepare(request)
    const { signal, caller } = call
    const together = call.together && (await recipes.together(call.together))
    const start = (signal: AbortSignal) =>
      generate(engine, asked, { ...call, signal, ...(together && { together }) }, metering, model)
    return database && caller?.key ? keys.during(caller.key.id, signal, start) : start(signal)
  }

  const named = async (model: string | undefined): Promise<string> => {
    // An engine of the user's own may need no model at all.
    const name = model ?? (await defaultModel(models)) ?? (given && 'default')
    if (!name) throw noDefault()
    return name
  }

  const completed = async <Request extends Loading>(
    request: ModelOptional<Request>,
    { signal = new AbortController().signal, ...options }: QuietCall,
  ) => {
    const model = await named(request.model)
    const call = admitted(options, model)
    const { load, model: name } = await recipes.loadOf(model, request.load)
    return { whole: { ...request, model, ...(load && { load }) } as Request, call: { ...call, signal }, name }
  }

  /** Asks the engine for something that nobody counts. */
  const ask =
    <Request extends Loading, Result>(method: (request: Request, call: EngineCall) => Promise<Result>) =>
    async (request: ModelOptional<Request>, options: QuietCall = {}): Promise<Result> => {
      const { whole, call } = await completed<Request>(request, options)
      return method(whole, toEngineCall(call))
    }

  /** Asks the engine for something that comes of texts that it has to read. */
  const askToRead =
    <Request extends Loading, Result extends { readonly inputTokens: number }>(
      method: (request: Request, call: EngineCall) => Promise<Result>,
      textsOf: (request: Request) => Reading['texts'],
    ) =>
    async (request: ModelOptional<Request>, options: QuietCall = {}): Promise<Read<Result>> => {
      const { whole, call, name } = await completed<Request>(request, options)
      return read({ model: name, texts: textsOf(whole) }, call, metering, () =>
        method(whole, toEngineCall(call)),
      )
    }

  const start = async (
    input: ChatPrompt,
    { model, signal = new AbortController().signal, caller, ...options }: ChatOptions,
    stream: boolean,
  ) =>
    answer(toChatRequest(input, await named(model), options), { signal, stream, ...(caller && { caller }) })

  function chat(input: ChatPrompt, options: ChatOptions & { readonly stream: true }): AsyncIterable<string>
  function chat(input: ChatPrompt, options?: ChatOptions & { readonly stream?: false }): Promise<Answer>
  function chat(
    input: ChatPrompt,
    options: ChatOptions & { readonly stream?: boolean } = {},
  ): AsyncIterable<string> | Promise<Answer> {
    const { stream = false, ...call } = options
    if (!stream) return start(input, call, false).then(collect)
    return texts((signal) => start(input, { ...call, signal }, true), call.signal)
  }

  return {
    generate: answer,
    countTokens: async (request, call) => engine.countTokens((await recipes.prepare(request)).request, call),
    render: async (request, call) => engine.render((await recipes.prepare(request)).request, call),
    embed: askToRead(
      (request: EmbedRequest, call) => engine.embed(request, call),
      ({ inputs }) => inputs,
    ),
    rerank: askToRead(
      (request: RerankRequest, call) => engine.rerank(request, call),
      ({ query, documents }) => documents.map((document) => query + document),
    ),
    tokenize: ask((request: TokenizeRequest, call) => engine.tokenize(request, call)),
    detokenize: ask((request: DetokenizeRequest, call) => engine.detokenize(request, call)),
    load: async (model, { signal = new AbortController().signal, ...how } = {}) =>
      engine.load(model, (await recipes.loadOf(model, how)).load ?? {}, { signal }),
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
        const subject = metering.subjectOf(checkedCaller({ id, limits: own, tier }))
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
      await closing.close()
      await database?.close()
    },
  }
}

/** A database that nobody gets to hold is closed again; a pool of the app's stays open. */
async function orClose<Opened>(database: Database | undefined, open: () => Promise<Opened>): Promise<Opened> {
  try {
    return await open()
  } catch (cause) {
    await database?.close().catch(() => {})
    throw cause
  }
}

/** What every request of a model has. */
interface Loading {
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
  const own = all.filter(({ builtIn }) => !builtIn)
  const candidates = own.length > 0 ? own : all
  return candidates.length === 1 ? candidates[0]?.name : undefined
}

const spendsNowhere = (): LlmError =>
  new LlmError(
    'internal',
    'In the app, a caller with `spendLimit` needs the option `database` of createLlm().',
    {
      setup: true,
    },
  )

const noDefault = (): LlmError =>
  invalidRequest('Say which model to use, or put exactly one GGUF file into the folder of models.', {
    param: 'model',
  })
