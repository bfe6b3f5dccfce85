/** Creates an `Llm` from its parts. Only this file imports all of them. */
import { dirname } from 'node:path'
import { openAuditLog } from './accounts/audit/open-audit-log.ts'
import { createAccess } from './accounts/auth/access.ts'
import type { Caller } from './accounts/auth/caller.ts'
import { CallerSubjects } from './accounts/auth/caller-subjects.ts'
import { parseCaller } from './accounts/auth/parse-caller.ts'
import { type Keys, openKeys } from './accounts/keys/keys.ts'
import { Sessions } from './accounts/sessions/sessions.ts'
import { openDeletionWatcher } from './accounts/tenants/deletion-watcher.ts'
import { KeyData } from './accounts/tenants/key-data.ts'
import type { TenantData } from './accounts/tenants/tenant-data.ts'
import { Tenants } from './accounts/tenants/tenants.ts'
import { UsageData } from './accounts/tenants/usage-data.ts'
import { openTraffic } from './accounts/traffic/open-traffic.ts'
import { openMetering } from './accounts/usage/open-metering.ts'
import { BatchHost } from './batches/batch-host.ts'
import { createAppCalls, createCallerLlm } from './calls/app-calls.ts'
import type { Call, CallOptions } from './calls/call.ts'
import { CallerClient, type ClientParts, type ClientScope } from './calls/client.ts'
import { ImageDownloads } from './calls/images/image-downloads.ts'
import { admitTransfers } from './calls/models/admitted-transfers.ts'
import { createFinders, type FindEngineName, withEngineModels } from './calls/models/engine-models.ts'
import { withResolver } from './calls/models/model-actions.ts'
import { OutputBudget } from './calls/output/output-budget.ts'
import { CallPipeline, createSteps } from './calls/pipeline.ts'
import { Shutdown } from './calls/shutdown.ts'
import { type QueueOptions, QueueStep } from './calls/steps/queue.ts'
import { publish } from './diagnostics/channels.ts'
import { describeCall } from './diagnostics/describe-call.ts'
import { LiveCalls } from './diagnostics/live-calls.ts'
import { logEvents, toLogFields } from './diagnostics/log-events.ts'
import { recordTraffic } from './diagnostics/record-traffic.ts'
import type { Engine } from './engine/engine.ts'
import type { EngineSet } from './engine/engine-set.ts'
import { checkDefaults } from './engine/local/check-defaults.ts'
import { LocalEngine } from './engine/local/local-engine.ts'
import type { FindModelSettings } from './engine/model-settings.ts'
import { invalidRequest, LlmError } from './errors.ts'
import { HealthChecks } from './health/health-checks.ts'
import { BodyBudget } from './http/body-budget.ts'
import { expectCredential } from './http/credential.ts'
import type { CallerLimits, RateLimiter } from './limits/limits.ts'
import { internals, type Llm } from './llm.ts'
import { containLogger, createErrorReporter } from './logger.ts'
import { findBuiltInModel } from './models/built-in.ts'
import { ModelAliases } from './models/model-aliases.ts'
import { ModelResolver } from './models/model-resolver.ts'
import { createSettingsFinder } from './models/model-settings.ts'
import { expectSource, isModelFolder, type ModelSource } from './models/ollama-store/standalone-files.ts'
import { GuardedFetch } from './models/registry/guarded-fetch.ts'
import { ModelStore } from './models/store.ts'
import { resolveCloseOptions } from './options/close.ts'
import { checkEngine } from './options/engines.ts'
import { checkLiveOptions } from './options/live.ts'
import type { AdaptedModel } from './options/models.ts'
import { expectNodeVersion } from './options/node-version.ts'
import { customEnginePermits } from './options/queue.ts'
import { type LlmOptions, resolveOptions } from './options.ts'
import { MemoryStore } from './response-store/memory-store.ts'
import { openResponseData } from './response-store/response-data.ts'
import type { ResponseStore } from './response-store/response-store.ts'
import { openCallDirectory } from './running-calls/call-directory.ts'
import type { Database } from './storage/database.ts'
import { type DatabaseLocation, isPostgres, openDatabase } from './storage/open.ts'
import type { DatabaseLog } from './storage/sqlite.ts'

/**
 * Creates an `Llm`. The first call that needs a model starts its model process, which loads the model.
 *
 * Rejects with an `LlmError` `unavailable` on Node.js before 20.19, and with a `TypeError` for a wrong option. A machine
 * on which no model can run logs a warning that names the way out, unless the app has further engines. Health checks fail
 * there, and so do calls of local models.
 */
export async function createLlm(options: LlmOptions = {}): Promise<Llm> {
  expectNodeVersion()
  const given = resolveOptions(options)
  const resolved = { ...given, logger: given.logger && containLogger(given.logger) }
  const report = createErrorReporter(resolved.logger)
  let llm: Llm | undefined
  // No call runs before it is set.
  const llmOf = (): Llm => llm as Llm
  const models = await openModels(resolved, options.models !== undefined)
  const settingsOf = openModelSettings(resolved)
  const first = await openEngine(models, resolved, { settingsOf, llmOf })
  const engines = await openEngines(first, resolved)
  const engine = engines ?? first
  const stopReplicaEvents = engine.onReplicaEvent?.(({ type, ...event }) =>
    publish(`modelmount:replica:${type}`, () => ({ ...event, llm: llmOf() })),
  )
  const onError = (cause: unknown, call?: Call): void =>
    report(LlmError.from(cause), call && toLogFields(describeCall(call)))
  const accounts = await openAccounts(resolved, onError)
  const { database, keys, access, metering, subjects, audit, traffic } = accounts
  const engineOf = (name: string): string | undefined => engines?.engineOf(name)
  const queue = resolved.queue && new QueueStep(withModelPermits(resolved.queue, settingsOf, engineOf))
  const imageDownloads = createImageDownloads(resolved)
  const pipeline = createPipeline(engine, resolved, accounts, { settingsOf, llmOf, queue, imageDownloads })
  const resolveDefaultModel = async (): Promise<string> => {
    // A custom engine may need no model at all.
    const name = (await findDefaultModel(models)) ?? (resolved.engine && 'default')
    if (!name) throw modelRequired()
    return name
  }
  const batches = createBatches(resolved, accounts, (scope) => new CallerClient(parts, scope), llmOf)
  const responses = await closeOnFailure(database, () => openResponses(resolved, accounts))
  const tenants = createTenants(engine, pipeline, accounts, { batches, responses: responses.data })
  const queues = () => queue?.waiting() ?? []
  const replicas = () => engine.replicas?.() ?? []
  const liveCalls = new LiveCalls(llmOf, { loaded: () => engine.loaded(), queues, replicas })
  const runningCalls = await closeOnFailure(database, () =>
    openCallDirectory(database, {
      ...{ llmOf, liveCalls, onError },
      cancelCall: (id, reason) => pipeline.cancelCall(id, reason),
    }),
  )
  const onClose = new Set<() => void>()
  const closeParts = async (reason?: LlmError): Promise<void> => {
    const watching = tenants.close()
    // Before the pipeline, so that running items are given back, and are no results.
    await batches.close()
    // Running answers are charged before the engine ends them.
    await pipeline.close(reason)
    await responses.store?.close()
    await imageDownloads.close()
    await engine.close()
    stopReplicaEvents?.()
    await models.close()
    await watching
    await runningCalls.close()
    liveCalls.close()
    for (const callback of onClose) callback()
    await keys.close()
    stopCounting?.()
    await traffic.recorder?.close()
    await metering.close()
    await database?.close()
    stopLogging?.()
  }
  const shutdown = new Shutdown({ pipeline, stopBatches: () => batches.stop(), close: closeParts })
  const aliases = new ModelAliases(resolved.aliases)
  const resolver = new ModelResolver(aliases, createFinders(engine, engines, models))
  const storeActions = withEngineModels(admitTransfers(models, shutdown, llmOf), engine, engineOf)
  const modelActions = withResolver(storeActions, resolver)
  const health = new HealthChecks({
    ...{ engine, database, listModels: () => storeActions.list() },
    storedLimiter: resolved.metering.limiterStore && metering.limiter,
    findModel: async (name) => (await resolver.resolve(name)).model,
    needsModels: !engines && (!resolved.engine || typeof resolved.engine === 'function'),
    fullQueues: () => queue?.fullQueues() ?? [],
    isClosing: () => shutdown.isClosing,
  })
  const parts: ClientParts = {
    ...{ pipeline, shutdown, engine, models: storeActions, resolver, resolveDefaultModel, llmOf },
    responses: responses.store,
    batchesFor: (caller) => batches.clientFor(caller),
  }
  /** Creates the client for a call from the app, and validates the caller. */
  const clientFor = ({ caller, dialect }: Pick<CallOptions, 'caller' | 'dialect'> = {}): CallerClient =>
    new CallerClient(parts, { caller: caller && parseCaller(caller), dialect })

  llm = {
    ...createAppCalls(clientFor),
    unload: async (model) => clientFor().unload(model),
    loaded: () => engine.loaded(),
    models: modelActions,
    batches: {
      ...batches.clientFor(undefined),
      create: async (requests, { caller, ...options } = {}) =>
        batches.clientFor(caller && parseCaller(caller)).create(requests, options),
    },
    keys,
    usage: metering.usage,
    tenants,
    audit: audit.log,
    limits: createCallerLimits(metering.limiter, subjects),
    apiKeyGenerator: async ({ headers }) => {
      const secret = expectCredential({ header: (name) => headers[name]?.toString() })
      return subjects.of(await keys.authenticate(secret))
    },
    configure: createConfigure(accounts, aliases),
    checkHealth: (options) => health.check(options),
    as: (caller) => createCallerLlm(clientFor({ caller })),
    get isClosing() {
      return shutdown.isClosing
    },
    close: async (options) => shutdown.close(resolveCloseOptions(options)),
    [internals]: {
      ...{ access, shutdown, liveCalls, runningCalls },
      tiers: () => subjects.tiers ?? {},
      prices: metering.ledger?.prices,
      traffic: traffic.report,
      sessions: new Sessions(database, (keyId) => keys.callerOf(keyId)),
      bodies: new BodyBudget(resolved.bodies),
      stallLimits: { responseMs: resolved.outputBuffer.stallMs, bodyMs: resolved.bodies.stallTimeoutMs },
      queues,
      replicas,
      hasBatches: () => batches.isOpen,
      onClose: (callback) => void onClose.add(callback),
      report,
      clientOf: (caller, request) => new CallerClient(parts, { caller, ...request, isRequest: true }),
    },
  }
  const { logger, accessLog } = resolved
  runningCalls.start()
  const { recorder } = traffic
  const stopCounting = recorder && recordTraffic(llm, (call) => recorder.add(call))
  const stopLogging = logger && logEvents(llm, { logger, accessLog, report })
  // The items of batches are calls, too.
  await closeOnFailure(database, () => batches.start())
  return llm
}

type Resolved = ReturnType<typeof resolveOptions>

interface CallContext {
  readonly settingsOf: FindModelSettings
  /** Returns the `Llm` that the events of the diagnostics channels belong to. */
  readonly llmOf: () => Llm
}

/** Batches are loaded when there is a database for them, so that an app without one starts faster. */
const createBatches = (
  { batches: { database: path, ...options }, logger }: Resolved,
  { access, database, keys, onError }: Awaited<ReturnType<typeof openAccounts>>,
  createClient: (scope: ClientScope) => CallerClient,
  llmOf: () => Llm,
): BatchHost =>
  new BatchHost({
    database,
    path,
    onError,
    openDatabase: (path) => openDatabase(path, (details, message) => logger?.warn(details, message)),
    openBatches: async (database) => {
      const { openBatches } = await import('./batches/open-batches.ts')
      return openBatches(database, {
        onEvent: ({ type, ...event }) =>
          publish(`modelmount:batch:${type}`, () => ({ ...event, llm: llmOf() }) as never),
        options,
        loadApis: async () => (await import('./dialects/batch-apis.ts')).batchApis,
        resolveCaller: async (caller) => {
          const payer = await findPayer(keys, caller)
          if (payer) access.expectScope(payer, 'inference')
          return payer
        },
        clientFor: (caller, dialect, batchItem) =>
          createClient({ caller, dialect, batchItem, isRequest: true }),
        onError,
      })
    },
  })

/** Opens the store of responses, and what deletes those of a tenant: other apps may store theirs in the database. */
async function openResponses(
  { responses: { store, ...bounds } }: Resolved,
  { database, onError }: Awaited<ReturnType<typeof openAccounts>>,
): Promise<{ readonly store: ResponseStore | undefined; readonly data: readonly TenantData[] }> {
  const data = database && (await openResponseData(database))
  const others = data ? [data] : []
  if (!store) return { store: undefined, data: others }
  if (store === 'memory' || !database || !data) {
    const memory = new MemoryStore(bounds)
    return { store: memory, data: [memory, ...others] }
  }
  const { DatabaseStore } = await import('./response-store/database-store.ts')
  return { store: new DatabaseStore(database, data, { ...bounds, onError }), data: others }
}

/** Throws a `TypeError` for a wrong default option of a model. */
function openModelSettings({ modelSettings }: Resolved): FindModelSettings {
  for (const [entry, settings] of Object.entries(modelSettings))
    checkDefaults(`modelSettings['${entry}'].`, settings)
  return createSettingsFinder(modelSettings)
}

async function openEngine(models: ModelStore, resolved: Resolved, context: CallContext): Promise<Engine> {
  const { engine } = resolved
  if (engine && typeof engine !== 'function') return engine
  const local = createLocalEngine(models, resolved, context)
  if (!engine) return local
  const wrapped = await engine(local)
  checkEngine('engine', wrapped)
  return wrapped
}

/** Undefined if the app has one engine, so that an app without `engines` loads less code. */
async function openEngines(first: Engine, { engines }: Resolved): Promise<EngineSet | undefined> {
  if (!engines) return undefined
  const { EngineSet } = await import('./engine/engine-set.ts')
  return new EngineSet(first, engines)
}

function createLocalEngine(
  models: ModelStore,
  { local, logger, engine, engines }: Resolved,
  { settingsOf, llmOf }: CallContext,
): LocalEngine {
  const isOnlyEngine = !engine && !engines
  const localEngine = new LocalEngine(models, {
    ...local,
    isOnlyEngine,
    settingsOf,
    warn: (message, model) => logger?.warn({ model }, message),
    debug: (details, message) => logger?.debug?.(details, message),
    onModelEvent: ({ type, ...event }) =>
      publish(
        type === 'cache-evict' ? 'modelmount:cache:evict' : `modelmount:model:${type}`,
        () => ({ ...event, llm: llmOf() }) as never,
      ),
  })
  // Calls of local models say it, too, and an app with other engines may have none.
  if (isOnlyEngine && localEngine.machineProblem !== undefined) logger?.warn({}, localEngine.machineProblem)
  return localEngine
}

/** Opens keys, authentication, limits and the ledger. */
async function openAccounts(resolved: Resolved, onError: (cause: unknown, call?: Call) => void) {
  const warn: DatabaseLog = (details, message) => resolved.logger?.warn(details, message)
  const database = resolved.database === undefined ? undefined : await openDatabase(resolved.database, warn)
  return closeOnFailure(database, async () => {
    const subjects = new CallerSubjects(resolved.metering.tiers)
    const keys = await openKeys(database, () => subjects.tiers)
    const namesOf = (ids: readonly string[]) => keys.namesOf(ids)
    return {
      ...{ database, keys, subjects, onError },
      audit: await openAuditLog(database, onError),
      deletions: database && (await openDeletionWatcher(database, onError)),
      metering: await openMetering(database, { ...resolved.metering, namesOf, onError }),
      traffic: await openTraffic(database, namesOf, onError),
      access: createAccess(resolved.access, (secrets) => keys.findCallers(secrets)),
    }
  })
}

const createConfigure =
  (
    { metering: { ledger }, subjects }: Awaited<ReturnType<typeof openAccounts>>,
    modelAliases: ModelAliases,
  ): Llm['configure'] =>
  (changes) => {
    checkLiveOptions(changes)
    const { prices, tiers, aliases } = changes
    if (prices !== undefined) {
      if (!ledger) throw new TypeError('`prices` need a database: set the option `database` of createLlm()')
      ledger.prices.set(prices)
    }
    if (tiers !== undefined) subjects.setTiers(structuredClone(tiers))
    if (aliases !== undefined) modelAliases.set(aliases)
  }

interface PipelineContext extends CallContext {
  readonly queue: QueueStep | undefined
  readonly imageDownloads: ImageDownloads
}

/** The same proxies as for registries. */
const createImageDownloads = ({ imageHosts: hosts, store }: Resolved): ImageDownloads =>
  new ImageDownloads({
    hosts,
    guard: new GuardedFetch({ privateHosts: [], proxy: store.registries.proxy }),
  })

const createPipeline = (
  engine: Engine,
  { local, logger, outputBuffer, interceptors }: Resolved,
  { access, database, keys, metering, subjects, onError }: Awaited<ReturnType<typeof openAccounts>>,
  { settingsOf, ...context }: PipelineContext,
): CallPipeline =>
  new CallPipeline(
    engine,
    createSteps({
      ...{
        ...metering,
        subjects,
        settingsOf,
        logger,
        onError,
        interceptors,
        scopesOf: access.scopesOf,
        engine,
        ...context,
      },
      keys: database && keys,
      maxContextSize: local.maxContextSize,
    }),
    new OutputBudget(outputBuffer),
  )

/**
 * A model that decodes more sequences in parallel admits more calls. The models of other engines admit as many as those
 * of a custom engine.
 */
const withModelPermits = (
  { followsParallel, ...queue }: NonNullable<Resolved['queue']>,
  settingsOf: FindModelSettings,
  engineOf: FindEngineName,
): QueueOptions => ({
  ...queue,
  ...(followsParallel && {
    permitsOf: (model) => {
      const { parallel } = settingsOf(model)
      if (parallel) return 2 * parallel
      return engineOf(model) === undefined ? undefined : customEnginePermits
    },
  }),
})

/** The current settings of a key. An app without keys leaves its batches to apps with them. */
async function findPayer(keys: Keys, caller: Caller | undefined): Promise<Caller | undefined> {
  if (!caller?.key) return caller
  if (!keys.hasDatabase)
    throw new LlmError('unavailable', 'The API key of this batch is in another database.')
  return keys.callerOf(caller.key.id)
}

/** Connects the deletion of tenants to everything that keeps their data. */
const createTenants = (
  engine: Engine,
  pipeline: CallPipeline,
  { database, keys, deletions, metering, audit, traffic }: Awaited<ReturnType<typeof openAccounts>>,
  { batches, responses }: { readonly batches: BatchHost; readonly responses: readonly TenantData[] },
): Tenants =>
  new Tenants(
    {
      // Batches first, so that no further item is charged.
      stores: [
        batches,
        ...responses,
        ...audit.data,
        ...traffic.data,
        ...(database ? [new UsageData(database), new KeyData(database)] : []),
      ],
      revokeKeys: async (tenant) => (database ? keys.revokeTenant(tenant) : 0),
      endCalls: async (tenant) => {
        await batches.hideTenant(tenant)
        const ended = await pipeline.endTenant(tenant, tenantDeleted())
        await metering.ledger?.chargeKilledCalls()
        return ended
      },
      deletePromptStates: async (tenant) => (await engine.deletePromptStates?.(tenant)) ?? 0,
    },
    deletions,
  )

const createCallerLimits = (limiter: RateLimiter, subjects: CallerSubjects): CallerLimits => ({
  limits: limiter.limits,
  reserve: (subjects, cost) => limiter.reserve(subjects, cost),
  status: (subjects) => limiter.status(subjects),
  of: async ({ id, limits, tier }) => {
    const subject = subjects.of(parseCaller({ id, limits, tier }))
    return subject.limits ? limiter.status([subject]) : []
  },
})

async function openModels(
  { models, store, database }: Pick<Resolved, 'models' | 'store' | 'database'>,
  isGiven: boolean,
): Promise<ModelStore> {
  const sources = models.map(toSource)
  if (isGiven) await Promise.all(sources.map(expectSource))
  const builtIn = findBuiltInModel()
  const folders = sources.filter(isModelFolder).map(({ path }) => path)
  return new ModelStore([...sources, ...(builtIn ? [builtIn] : [])], {
    ...store,
    snapshotFolders: [...folders.slice(0, 1), ...foldersOf(database)],
  })
}

/** The folder of a database in a file. */
const foldersOf = (database: DatabaseLocation | undefined): readonly string[] =>
  typeof database !== 'string' || isPostgres(database) || database === ':memory:' ? [] : [dirname(database)]

const toSource = (given: string | AdaptedModel): ModelSource =>
  typeof given === 'string'
    ? { path: given }
    : {
        name: given.name,
        path: given.file,
        adapters: given.adapters.map(({ file, scale = 1 }) => ({ path: file, scale })),
      }

/** Closes the database if `open` fails. A pool of the host app stays open. */
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

/** Name of the app's own model if it has exactly one, or of the built-in model if it has none. */
async function findDefaultModel(models: ModelStore): Promise<string | undefined> {
  const all = await models.list()
  const own = all.filter(({ isBuiltIn }) => !isBuiltIn)
  const candidates = own.length > 0 ? own : all
  return candidates.length === 1 ? candidates[0]?.name : undefined
}

const tenantDeleted = (): LlmError => new LlmError('permission', 'The tenant of this call has been deleted.')

const modelRequired = (): LlmError =>
  invalidRequest('Say which model to use, or put exactly one GGUF file into the folder of models.', {
    param: 'model',
  })
