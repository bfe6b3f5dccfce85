/** The object that users hold, and the only file that knows all the parts. */

import { type Access, createAccess } from './access.ts'
import type { Embeddings, EmbedRequest, Ranking, RerankRequest } from './engine/embeddings.ts'
import type { Engine, EngineCall } from './engine/engine.ts'
import { type Answer, collect } from './engine/events.ts'
import { LocalEngine } from './engine/local/local-engine.ts'
import { readAhead } from './engine/read-ahead.ts'
import type { GenerateRequest, LoadOptions, Message, Sampling } from './engine/request.ts'
import type { DetokenizeRequest, TokenizeRequest } from './engine/tokens.ts'
import { invalidRequest, LlmError } from './errors.ts'
import { type CallOptions, type Generation, generate, tenantOf } from './generate.ts'
import { type Keys, openKeys } from './keys/keys.ts'
import type { RateLimiter } from './limits/limits.ts'
import { createReport } from './logger.ts'
import { builtInModel } from './models/built-in.ts'
import { readParameters } from './models/parameters.ts'
import { expectSource, type ModelSource } from './models/plain-files.ts'
import { recipeOf, withRecipe } from './models/recipe.ts'
import { ModelStore } from './models/store.ts'
import { type AdaptedModel, type LlmOptions, resolveOptions } from './options.ts'
import { type Read, type Reading, read } from './read.ts'
import { openDatabase } from './storage/open.ts'
import { openMetering, type UsageReports } from './usage/open.ts'

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
  /** Where the limits of callers and models stand; for routes of the app, too. */
  readonly limits: RateLimiter
  /** Who may call the routes. */
  readonly access: Access
  /** Tells the logger of an error that clients cannot help. For dialects and adapters. */
  report(error: LlmError): void
  /** Ends what runs, and the model process with it. */
  close(): Promise<void>
}

/** Without a name it is the model that `chat()` takes. */
export type ModelOptional<Request extends { readonly model: string }> = Omit<Request, 'model'> &
  Partial<Pick<Request, 'model'>>

/** A call whose answer comes whole. */
export type QuietCall = Partial<Omit<CallOptions, 'stream'>>

/** A question, or a whole conversation. */
export type ChatPrompt =
  | string
  | readonly { readonly role: 'system' | 'user' | 'assistant'; readonly content: string }[]

export interface ChatOptions extends Sampling {
  /** @default your own model if you have just one, the built-in one if you have none */
  readonly model?: string
  readonly maxTokens?: number
  readonly stop?: readonly string[]
  readonly signal?: AbortSignal
}

/** Puts the parts together. Nothing is loaded, and no process started, before the first call that needs it. */
export async function createLlm(options: LlmOptions = {}): Promise<Llm> {
  const resolved = resolveOptions(options)
  const { models: paths, store, local, engine: given, access, logger } = resolved
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
  const keys = await openKeys(database)
  const { metering, limits, usage, ...closing } = await openMetering(database, {
    ...resolved.metering,
    onError: (cause) => report(LlmError.from(cause)),
  })

  /** Models whose recipes somebody was warned of. */
  const warned = new Set<string>()

  /** As its recipe wants it. An engine of the user's own may know names that are no files here. */
  const prepared = async (request: GenerateRequest): Promise<GenerateRequest> =>
    (await found(request)).request

  /** How the recipe wants it loaded, where nothing else is said. */
  const loadOf = async (model: string, load: LoadOptions | undefined): Promise<LoadOptions | undefined> =>
    (await prepared({ model, input: { kind: 'text', prompt: [] }, ...(load && { load }) })).load

  /** The same, and how the model is called whichever way its name was written. */
  const found = async (
    request: GenerateRequest,
  ): Promise<{ readonly request: GenerateRequest; readonly model: string }> => {
    const model = await models.get(request.model).catch(ifNotFound)
    const recipe = model && recipeOf(model)
    if (model && recipe && !warned.has(model.digest)) {
      warned.add(model.digest)
      for (const problem of readParameters(recipe.parameters).problems)
        logger?.warn({ model: model.name }, `A parameter of the model is left out: ${problem}`)
    }
    return { request: withRecipe(request, recipe, local.maxContextSize), model: model?.name ?? request.model }
  }

  const answer = async (request: GenerateRequest, call: CallOptions): Promise<Generation> => {
    const { request: asked, model } = await found(request)
    return generate(engine, asked, call, metering, model)
  }

  const named = async (model: string | undefined): Promise<string> => {
    // An engine of the user's own may need no model at all.
    const name = model ?? (await defaultModel(models)) ?? (given && 'default')
    if (!name) throw noDefault()
    return name
  }

  const completed = async <Request extends Loading>(
    request: ModelOptional<Request>,
    { signal = new AbortController().signal, ...call }: QuietCall,
  ) => {
    const model = await named(request.model)
    const load = await loadOf(model, request.load)
    return { whole: { ...request, model, ...(load && { load }) } as Request, call: { ...call, signal } }
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
      const { whole, call } = await completed<Request>(request, options)
      const model = await models.get(whole.model).catch(ifNotFound)
      const reading = { model: model?.name ?? whole.model, texts: textsOf(whole) }
      return read(reading, call, metering, () => method(whole, toEngineCall(call)))
    }

  const start = async (
    input: ChatPrompt,
    { model, maxTokens, stop, signal = new AbortController().signal, ...sampling }: ChatOptions,
    stream: boolean,
  ) => {
    const request: GenerateRequest = {
      model: await named(model),
      input: { kind: 'chat', messages: toMessages(input) },
      ...(maxTokens !== undefined && { maxTokens }),
      ...(stop && { stop }),
      sampling,
    }
    return answer(request, { signal, stream })
  }

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
    countTokens: async (request, call) => engine.countTokens(await prepared(request), call),
    render: async (request, call) => engine.render(await prepared(request), call),
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
    load: async (model, { signal = new AbortController().signal, ...how } = {}) => {
      return engine.load(model, (await loadOf(model, how)) ?? {}, { signal })
    },
    unload: (model) => engine.unload(model),
    chat,
    models,
    loaded: () => engine.loaded(),
    keys,
    usage,
    limits,
    access: createAccess(access, (secret) => keys.authenticate(secret)),
    report,
    close: async () => {
      await engine.close()
      await keys.close()
      await closing.close()
      await database?.close()
    },
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

function ifNotFound(cause: unknown): undefined {
  if (LlmError.from(cause).code !== 'not_found') throw cause
}

const toSource = (given: string | AdaptedModel): ModelSource =>
  typeof given === 'string'
    ? { path: given }
    : {
        name: given.name,
        path: given.file,
        adapters: given.adapters.map(({ file, scale = 1 }) => ({ path: file, scale })),
      }

/** Who stops reading, or leaves, ends the answer at once: that is what `readAhead` does for the engine, too. */
const texts = (
  start: (signal: AbortSignal) => Promise<Generation>,
  signal: AbortSignal = new AbortController().signal,
): AsyncIterable<string> =>
  readAhead(signal, async (push, stopped) => {
    for await (const event of await start(stopped)) if (event.type === 'text') push(event.text)
  })

function toMessages(input: ChatPrompt): readonly Message[] {
  const messages = typeof input === 'string' ? [{ role: 'user' as const, content: input }] : input
  if (!Array.isArray(messages))
    throw new TypeError('Expected a text, or a list of messages with `role` and `content`')
  return messages.map(({ role, content }) => ({ role, content: [{ type: 'text', text: content }] }))
}

/** The user's own model if there is just one, the built-in one if there is none. */
async function defaultModel(models: ModelStore): Promise<string | undefined> {
  const all = await models.list()
  const own = all.filter(({ builtIn }) => !builtIn)
  const candidates = own.length > 0 ? own : all
  return candidates.length === 1 ? candidates[0]?.name : undefined
}

const noDefault = (): LlmError =>
  invalidRequest('Say which model to use, or put exactly one GGUF file into the folder of models.', {
    param: 'model',
  })
