/** Puts the parts together; the only file that knows all of them. */
import { createAccess } from './accounts/auth/access.ts'
import type { Caller } from './accounts/auth/caller.ts'
import { CallerSubjects } from './accounts/auth/caller-subjects.ts'
import { parseCaller } from './accounts/auth/parse-caller.ts'
import { openKeys } from './accounts/keys/keys.ts'
import { openMetering } from './accounts/usage/open-metering.ts'
import { type ChatOptions, type ChatPrompt, streamText, toChatRequest } from './calls/chat.ts'
import { createClient } from './calls/client.ts'
import { CallPipeline } from './calls/pipeline.ts'
import { createDefaultsStep } from './calls/steps/apply-defaults.ts'
import { createAuthoriseStep } from './calls/steps/authorise.ts'
import { CreditStep } from './calls/steps/credit.ts'
import { LimitsStep } from './calls/steps/limits.ts'
import { QueueStep } from './calls/steps/queue.ts'
import { createModelStep } from './calls/steps/resolve-model.ts'
import { createRevocationStep } from './calls/steps/revocation.ts'
import { collect, type GenerateResult } from './engine/events.ts'
import { LocalEngine } from './engine/local/local-engine.ts'
import { invalidRequest, LlmError } from './errors.ts'
import { expectCredential } from './http/credential.ts'
import { internals, type Llm } from './llm.ts'
import { createErrorReporter } from './logger.ts'
import { findBuiltInModel } from './models/built-in.ts'
import { expectSource, type ModelSource } from './models/ollama-store/standalone-files.ts'
import { ModelStore } from './models/store.ts'
import type { AdaptedModel } from './options/models.ts'
import { type LlmOptions, resolveOptions } from './options.ts'
import type { Database } from './storage/database.ts'
import { openDatabase } from './storage/open.ts'

/** Loads nothing and starts no process before the first call that needs it. */
export async function createLlm(options: LlmOptions = {}): Promise<Llm> {
  const resolved = resolveOptions(options)
  const { store, local, engine: customEngine, logger } = resolved
  const report = createErrorReporter(logger)
  const onError = (cause: unknown): void => report(LlmError.from(cause))

  const models = await openModels(resolved.models, store, options.models !== undefined)
  const engine =
    customEngine ??
    new LocalEngine(models, {
      ...local,
      warn: (message) => logger?.warn({}, message),
      debug: (details, message) => logger?.debug?.(details, message),
    })

  const database = resolved.database === undefined ? undefined : await openDatabase(resolved.database)
  const { keys, access, metering } = await closeOnFailure(database, async () => {
    const keys = await openKeys(database, options.tiers && Object.keys(options.tiers))
    const namesOf = async () => new Map((await keys.list()).map(({ id, name }) => [id, name]))
    const metering = await openMetering(database, { ...resolved.metering, namesOf, onError })
    return { keys, metering, access: createAccess(resolved.access, (secret) => keys.authenticate(secret)) }
  })
  const { limiter, ledger, modelSubjectOf, usage } = metering
  const subjects = new CallerSubjects(resolved.metering.tiers)

  const pipeline = new CallPipeline(engine, [
    createAuthoriseStep(ledger !== undefined),
    createModelStep((name) => models.get(name)),
    createDefaultsStep({ maxContextSize: local.maxContextSize, logger }),
    ...(database ? [createRevocationStep(keys)] : []),
    new LimitsStep({ limiter, subjects, modelSubjectOf, onError }),
    ...(resolved.metering.queue ? [new QueueStep(resolved.metering.queue)] : []),
    ...(ledger ? [new CreditStep(ledger)] : []),
  ])
  const resolveDefaultModel = async (): Promise<string> => {
    // A custom engine may need no model at all.
    const name = (await findDefaultModel(models)) ?? (customEngine && 'default')
    if (!name) throw modelRequired()
    return name
  }
  const clientOf = (caller?: Caller, dialect?: string) =>
    createClient({ pipeline, engine, models, resolveDefaultModel }, caller, dialect)
  /** For calls of the app itself, whose caller is checked here. */
  const clientFor = ({
    caller,
    dialect,
  }: {
    caller?: Caller | undefined
    dialect?: string | undefined
  } = {}) => clientOf(caller && parseCaller(caller), dialect)

  const startChat = async (
    input: ChatPrompt,
    { model, signal = new AbortController().signal, caller, ...options }: ChatOptions,
    stream: boolean,
  ) => {
    const request = toChatRequest(input, model ?? (await resolveDefaultModel()), options)
    return clientFor({ caller }).generate(request, { signal, stream })
  }
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
    chat,
    generate: async (request, options) => clientFor(options).generate(request, options),
    embed: async (request, options) => clientFor(options).embed(request, options),
    rerank: async (request, options) => clientFor(options).rerank(request, options),
    tokenize: async (request, options) => clientFor(options).tokenize(request, options),
    detokenize: async (request, options) => clientFor(options).detokenize(request, options),
    countTokens: async (request, options) => clientFor(options).countTokens(request, options),
    render: async (request, options) => clientFor(options).render(request, options),
    load: async (model, { caller, dialect, ...options } = {}) =>
      clientFor({ caller, dialect }).load(model, options),
    unload: async (model) => clientFor().unload(model),
    loaded: () => engine.loaded(),
    models,
    keys,
    usage,
    limits: {
      limits: limiter.limits,
      reserve: (subjects, cost) => limiter.reserve(subjects, cost),
      status: (subjects) => limiter.status(subjects),
      of: async ({ id, limits, tier }) => {
        const subject = subjects.of(parseCaller({ id, limits, tier }))
        return subject.limits ? limiter.status([subject]) : []
      },
    },
    apiKeyGenerator: async ({ headers }) => {
      const secret = expectCredential({ header: (name) => headers[name]?.toString() })
      return subjects.of(await keys.authenticate(secret))
    },
    as: (caller) => clientFor({ caller }),
    close: async () => {
      // Running answers are charged before the engine ends them.
      await pipeline.close()
      await engine.close()
      await keys.close()
      await metering.close()
      await database?.close()
    },
    [internals]: {
      access,
      report,
      clientOf,
    },
  }
}

async function openModels(
  paths: readonly (string | AdaptedModel)[],
  store: ConstructorParameters<typeof ModelStore>[1],
  isGiven: boolean,
): Promise<ModelStore> {
  const sources = paths.map(toSource)
  if (isGiven) await Promise.all(sources.map(expectSource))
  const builtIn = await findBuiltInModel()
  return new ModelStore([...sources, ...(builtIn ? [builtIn] : [])], store)
}

const toSource = (given: string | AdaptedModel): ModelSource =>
  typeof given === 'string'
    ? { path: given }
    : {
        name: given.name,
        path: given.file,
        adapters: given.adapters.map(({ file, scale = 1 }) => ({ path: file, scale })),
      }

/** Closes the database when what needs it cannot be opened. A pool of the app stays open. */
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

/** The user's own model if there is just one, the built-in one if there is none. */
async function findDefaultModel(models: ModelStore): Promise<string | undefined> {
  const all = await models.list()
  const own = all.filter(({ isBuiltIn }) => !isBuiltIn)
  const candidates = own.length > 0 ? own : all
  return candidates.length === 1 ? candidates[0]?.name : undefined
}

const modelRequired = (): LlmError =>
  invalidRequest('Say which model to use, or put exactly one GGUF file into the folder of models.', {
    param: 'model',
  })
