/**
 * All options of `createLlm`. Larger groups of options are in `options/`. No other code reads settings from
 * environment variables.
 */
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type AccessOptions, checkAccessOptions } from './accounts/auth/access.ts'
import type { Tiers } from './accounts/auth/caller.ts'
import type { Prices } from './accounts/prices/pricing.ts'
import type { SpendingWarningOptions } from './accounts/usage/warnings.ts'
import type { Interceptor } from './calls/interceptor.ts'
import type { Engine } from './engine/engine.ts'
import type { ModelSettings } from './engine/model-settings.ts'
import type { LimiterStore, Limits } from './limits/limits.ts'
import type { Logger } from './logger.ts'
import type { Aliases } from './models/model-aliases.ts'
import { checkAliases } from './options/aliases.ts'
import { type BatchOptions, type ResolvedBatchSettings, resolveBatchOptions } from './options/batches.ts'
import { type BodyOptions, type ResolvedBodyOptions, resolveBodyOptions } from './options/bodies.ts'
import { checkBoolean, checkInteger, checkKeys, checkMethods, expandHome } from './options/check.ts'
import { checkEngine, checkEngines, type Engines } from './options/engines.ts'
import { resolveInterceptors } from './options/interceptors.ts'
import { type LocalOptions, type ResolvedLocalOptions, resolveLocalOptions } from './options/local.ts'
import {
  type ResolvedMeteringOptions,
  resolveMeteringOptions,
  type UsageOptions,
} from './options/metering.ts'
import { type ModelOptions, resolveModelSettings } from './options/model-settings.ts'
import { type AdaptedModel, type ModelLocations, resolveModels } from './options/models.ts'
import {
  type OutputBufferOptions,
  type ResolvedOutputBufferOptions,
  resolveOutputBufferOptions,
} from './options/output-buffer.ts'
import { type QueueingOptions, type ResolvedQueueOptions, resolveQueueOptions } from './options/queue.ts'
import {
  type ResolvedResponseOptions,
  type ResponseOptions,
  resolveResponseOptions,
} from './options/responses.ts'
import {
  checkHosts,
  type ResolvedStoreOptions,
  resolveStoreOptions,
  type StoreOptions,
} from './options/store.ts'
import type { DatabaseLocation } from './storage/open.ts'
import { findPackageFile } from './util/package-file.ts'

/** Options of `createLlm()`. A wrong or unknown option throws a `TypeError` that names it. */
export interface LlmOptions extends AccessOptions, QueueingOptions {
  /**
   * Locations of models. A string is the path of a GGUF file, or of a folder in Ollama's layout or with
   * `*.gguf` files. The model in a `*.gguf` file has the file's name without the extension. An object is a
   * GGUF file with LoRA adapters. Each path must exist. If two models have the same name, the model in the
   * earlier location is used. The built-in model comes last. New models are stored in the first folder. The
   * other folders are read-only.
   *
   * @default `$OLLAMA_MODELS`, else `~/.ollama/models`
   */
  models?: string | readonly (string | AdaptedModel)[] | undefined

  /** The model store and its registries. @default {} */
  store?: StoreOptions | undefined

  /** Loading of models on this machine. @default {} */
  local?: LocalOptions | undefined

  /**
   * Settings of single models, by name or pattern: `{ 'llama3.2': { contextSize: 8192 }, 'qwen3:*': { topK: 20 } }`.
   * Each field comes from the most specific entry that sets it. Options of a call come first, then these settings,
   * then the Modelfile, then `local` and the defaults of the API. A custom `engine` may ignore `parallel`, `gpuLayers`
   * and `keepAlive`.
   *
   * @default none
   */
  modelSettings?: Readonly<Record<string, ModelOptions>> | undefined

  /**
   * Other names for models, by name or pattern, for agents and SDKs that ask for hosted models:
   * `{ 'claude-*': 'qwen3:8b', 'gpt-5': 'llama3.3' }`. An alias without `*` comes before all patterns, then the pattern
   * with the most characters besides `*`, then the later one. A model with exactly the requested name comes before all
   * aliases. A target is the name of a model, and never an alias. A list has fallbacks, or weights:
   * `{ best: ['gpu/qwen3:32b', 'qwen3:8b'] }`. The next model is used if the one before fails before its first event.
   *
   * @default none
   */
  aliases?: Aliases | undefined

  /**
   * A custom engine that replaces the local one, such as `scriptedEngine()` in tests. A function gets the local engine
   * and returns an engine that uses it, such as `recordingEngine()`.
   *
   * @default the local engine, which runs node-llama-cpp on this machine
   */
  engine?: Engine | WrapEngine | undefined

  /**
   * Further engines by name, such as `{ gpu: upstreamEngine({ … }) }`. Their models are `gpu/NAME`, or `NAME` where no
   * model of the store and no alias has that name, and the first of them that knows it has it. A name has letters, digits,
   * `.`, `_` and `-`. It is not `local`. An engine needs the method `findModel`.
   *
   * @default none
   */
  engines?: Engines | undefined

  /**
   * Hosts from which images by URL are downloaded, as `host` or `host:port`, for models that see images. Only `https:` URLs
   * are used, and hosts with private addresses are not. A redirect must lead to one of these hosts.
   *
   * @default none: callers send images as `data:` URLs or in Base64
   */
  imageHosts?: readonly string[] | undefined

  /**
   * The database for keys, limits and usage: the path of an SQLite file on a local disk, `':memory:'`,
   * `postgres://…`, or the app's `Pool` of `pg`. Processes with the same database share keys, limits and
   * usage.
   *
   * @default with `auth: 'keys'` or `prices`, the file `modelmount.db` in the first folder of models; else
   *   none
   */
  database?: DatabaseLocation | undefined

  /**
   * Prices by model, in dollars per million tokens. The name `*` matches all other models. Callers with a
   * spending limit cannot use models without a price.
   *
   * @default none: calls cost nothing, and usage is counted only if there is a database
   */
  prices?: Prices | undefined

  /**
   * Maps the name of each tier to its limits and its weight. Calls are counted separately for each caller of a
   * tier. The weight is a whole number from 1 to 10. While several tenants use a model, a tenant with the weight 2
   * gets twice the time of a tenant with the weight 1.
   *
   * @default no tiers; without a tier, the weight is 1
   */
  tiers?: Tiers | undefined

  /** Maps the name of each model to its limits. All callers of a model share its limits. @default none */
  modelLimits?: Readonly<Record<string, Limits>> | undefined

  /**
   * Where rate limits are counted: `redisLimiterStore(client)` of `@modelmount/core/redis`. Processes with the same store
   * share their limits. Keys, usage and spending limits stay in the `database`.
   *
   * @default the `database`, else the memory of this process
   */
  limiterStore?: LimiterStore | undefined

  /** Message batches, and files. They need a database. @default {} */
  batches?: BatchOptions | undefined

  /** Responses and conversations that `/v1/responses` and `/v1/conversations` store. @default {} */
  responses?: ResponseOptions | undefined

  /** Memory for the bodies of HTTP requests, and the time limit of their pauses. @default {} */
  bodies?: BodyOptions | undefined

  /**
   * Warnings that a spending limit is near. They are also published on the channel `modelmount:spending` of
   * `node:diagnostics_channel`.
   *
   * @default {}
   */
  spendingWarnings?: SpendingWarningOptions | undefined

  /** How long usage is stored. @default {} */
  usage?: UsageOptions | undefined

  /** Output that readers have not taken yet. @default {} */
  outputBuffer?: OutputBufferOptions | undefined

  /**
   * Code that runs around each call of a model: to change, refuse or record calls, and to map answers.
   *
   * @default none
   */
  interceptors?: readonly Interceptor[] | undefined

  /**
   * Receives errors that no client can correct, and what happens to models. A pino logger fits without a wrapper.
   *
   * @default nothing is logged
   */
  logger?: Logger | undefined

  /** Whether the logger also gets one line for each call, at the level `info`. @default false */
  accessLog?: boolean | undefined
}

export type WrapEngine = (local: Engine) => Engine | Promise<Engine>

export interface ResolvedOptions {
  readonly models: ModelLocations
  readonly store: ResolvedStoreOptions
  readonly local: ResolvedLocalOptions & { readonly maxCalls: number }
  readonly modelSettings: Readonly<Record<string, ModelSettings>>
  readonly aliases: Aliases
  readonly engine: Engine | WrapEngine | undefined
  /** Undefined if there are none. */
  readonly engines: Engines | undefined
  readonly imageHosts: readonly string[]
  readonly access: AccessOptions
  readonly database: DatabaseLocation | undefined
  readonly metering: ResolvedMeteringOptions
  readonly queue: ResolvedQueueOptions | undefined
  readonly batches: ResolvedBatchSettings
  readonly responses: ResolvedResponseOptions
  readonly bodies: ResolvedBodyOptions
  readonly outputBuffer: ResolvedOutputBufferOptions
  readonly interceptors: readonly Interceptor[]
  readonly logger: Logger | undefined
  readonly accessLog: boolean
}

/**
 * Checks options like `createLlm()`, but opens nothing. Throws a `TypeError` that names the wrong option.
 */
export function checkOptions(options: LlmOptions): void {
  checkAccessOptions(options)
  resolveOptions(options)
}

export function resolveOptions(
  options: LlmOptions,
  environment: NodeJS.ProcessEnv = process.env,
): ResolvedOptions {
  checkKeys('', options, [
    'models',
    'store',
    'local',
    'auth',
    'origins',
    'scopes',
    'maxFailedAuthentications',
    'engine',
    'engines',
    'imageHosts',
    'database',
    'prices',
    'tiers',
    'modelLimits',
    'limiterStore',
    'modelSettings',
    'aliases',
    'maxAdmitted',
    'maxQueued',
    'queueTimeout',
    'batches',
    'responses',
    'bodies',
    'spendingWarnings',
    'usage',
    'outputBuffer',
    'interceptors',
    'logger',
    'accessLog',
  ])
  if (options.aliases !== undefined) checkAliases(options.aliases)
  if (options.engine !== undefined && typeof options.engine !== 'function')
    checkEngine('engine', options.engine)
  if (options.engines !== undefined) checkEngines(options.engines)
  checkBoolean('accessLog', options.accessLog)
  if (options.accessLog && !options.logger)
    throw new TypeError('`accessLog` needs a logger: set the option `logger` of createLlm()')
  checkMethods('logger', options.logger, ['warn', 'error', ...(options.accessLog ? ['info'] : [])])
  const models = resolveModels(
    options.models,
    environment.OLLAMA_MODELS || join(homedir(), '.ollama', 'models'),
  )
  const local = resolveLocalOptions(options.local, environment, findModelProcess())
  const database = resolveDatabase(options, models)
  const modelSettings = resolveModelSettings(options.modelSettings, local.maxContextSize)
  const isLocal = options.engine === undefined || typeof options.engine === 'function'
  const queue = resolveQueueOptions(options, isLocal ? local.parallel : undefined, environment)
  return {
    models,
    store: resolveStoreOptions(options.store, environment),
    local: { ...local, maxCalls: local.maxCalls ?? defaultMaxCalls(queue, local, modelSettings) },
    modelSettings,
    aliases: options.aliases ?? {},
    engine: options.engine,
    engines: Object.keys(options.engines ?? {}).length > 0 ? options.engines : undefined,
    imageHosts: checkHosts('imageHosts', options.imageHosts ?? []),
    access: {
      auth: options.auth,
      origins: options.origins,
      scopes: options.scopes,
      maxFailedAuthentications: checkInteger(
        'maxFailedAuthentications',
        options.maxFailedAuthentications,
        1,
        1_000_000,
      ),
    },
    database,
    metering: resolveMeteringOptions(options),
    queue,
    batches: resolveBatchOptions(
      options.batches,
      isLocal ? local.parallel : undefined,
      database !== undefined,
    ),
    responses: resolveResponseOptions(options.responses, database !== undefined),
    bodies: resolveBodyOptions(options.bodies),
    outputBuffer: resolveOutputBufferOptions(options.outputBuffer),
    interceptors: resolveInterceptors(options.interceptors),
    logger: options.logger,
    accessLog: options.accessLog ?? false,
  }
}

/**
 * As many calls as the queues of all loaded models admit. Embeddings, loads and background calls do not queue,
 * but count, too.
 */
const defaultMaxCalls = (
  queue: ResolvedQueueOptions | undefined,
  { maxLoadedModels }: ResolvedLocalOptions,
  modelSettings: ResolvedOptions['modelSettings'],
): number => {
  if (!queue) return 512
  const ownPermits = Object.values(modelSettings).map(({ parallel = 0 }) => 2 * parallel)
  const permits = queue.followsParallel ? Math.max(queue.permits, ...ownPermits) : queue.permits
  return Math.max(512, (permits + queue.maxQueued) * maxLoadedModels)
}

function resolveDatabase(
  { database, auth, prices }: LlmOptions,
  models: ModelLocations,
): DatabaseLocation | undefined {
  if (typeof database === 'string' && database !== '') return expandHome(database)
  if (database !== undefined) {
    checkMethods('database', database as object, ['query', 'connect'])
    return database
  }
  if (String(auth) !== 'keys' && prices === undefined) return undefined
  const folder = models.find((model) => typeof model === 'string' && !model.toLowerCase().endsWith('.gguf'))
  if (typeof folder === 'string') return join(folder, 'modelmount.db')
  throw new TypeError(
    "Expected the option `database`: `auth: 'keys'` and `prices` need one, and `models` has no folder for it",
  )
}

/**
 * Returns the entry file of the model process. The path from this file is the same in the published package. In a
 * bundle, there is no such file, and the installed package has it.
 */
function findModelProcess(): string {
  const entryPoint = '@modelmount/core/model-process'
  // Not `new URL(path, import.meta.url)`, for which webpack would copy the file without those that it imports.
  const beside =
    import.meta.url && join(dirname(fileURLToPath(import.meta.url)), 'engine/local/model-process/main.js')
  return beside && existsSync(beside) ? beside : (findPackageFile(entryPoint) ?? entryPoint)
}
