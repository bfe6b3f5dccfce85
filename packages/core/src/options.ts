/** Every option of `createLlm`: its meaning, default and check, the larger groups in `options/`. The app's environment is read nowhere else. */
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { AccessOptions } from './accounts/auth/access.ts'
import type { Prices } from './accounts/usage/pricing.ts'
import type { SpendingWarningOptions } from './accounts/usage/warnings.ts'
import type { Engine } from './engine/engine.ts'
import type { Limits } from './limits/limits.ts'
import type { Logger } from './logger.ts'
import { checkKeys, checkMethods, expandHome } from './options/check.ts'
import { type LocalOptions, type ResolvedLocalOptions, resolveLocalOptions } from './options/local.ts'
import {
  type ResolvedMeteringOptions,
  resolveMeteringOptions,
  type UsageOptions,
} from './options/metering.ts'
import { type AdaptedModel, type ModelLocations, resolveModels } from './options/models.ts'
import { type ResolvedStoreOptions, resolveStoreOptions, type StoreOptions } from './options/store.ts'
import type { DatabaseLocation } from './storage/open.ts'

export interface LlmOptions extends AccessOptions {
  /**
   * Where models are: folders, as Ollama fills them or with `*.gguf` files that are served by their stem; or single such
   * files, or files with LoRA adapters under names of their own. Of two with the same name the earlier wins, and all
   * win over the built-in one. The first folder is written to, the others are only read. A path that is given has to
   * exist; the default one need not.
   *
   * @default `$OLLAMA_MODELS`, else `~/.ollama/models`
   */
  models?: string | readonly (string | AdaptedModel)[] | undefined

  /** How models are kept, and where they come from. */
  store?: StoreOptions | undefined

  /** How models are loaded on this machine. */
  local?: LocalOptions | undefined

  /**
   * What makes the tokens; given, nothing is loaded here. For tests: `scriptedEngine()`.
   *
   * @default the engine on this machine, over node-llama-cpp
   */
  engine?: Engine | undefined

  /**
   * What keeps keys, and all else that is to last: the path of an SQLite file on a local disk, `':memory:'`, `postgres://…`, or the
   * app's own `Pool` of `pg`. Processes that name the same one share it.
   *
   * @default with `auth: 'keys'`, and with `prices`, the file `modelmount.db` in the first folder of models; else none is opened
   */
  database?: DatabaseLocation | undefined

  /**
   * What a million tokens of a model cost, in dollars; `*` is all others. With it there is a ledger. A model without a price is
   * refused to callers with a spending limit.
   *
   * @default none: what is used is counted where there is a database, and costs nothing
   */
  prices?: Prices | undefined

  /** Limits by name, for callers that name one: each caller has its own. */
  tiers?: Readonly<Record<string, Limits>> | undefined

  /** Limits by model, for all its callers together. */
  modelLimits?: Readonly<Record<string, Limits>> | undefined

  /**
   * How many calls may wait for each model, from 0 on. Callers take turns in the queue. When it is full, the caller with the
   * most queued calls is rejected.
   *
   * @default 448 with `auth: 'host'` or `'keys'`; else calls wait in the engine only
   */
  maxQueued?: number | undefined

  /** When to say that a spending limit is near. The channel `modelmount:spending` of `node:diagnostics_channel` says it, too. */
  spendingWarnings?: SpendingWarningOptions | undefined

  /** How long is kept what was used. */
  usage?: UsageOptions | undefined

  /**
   * Where failures go that clients cannot help. A pino logger fits as it is.
   *
   * @default nothing is logged
   */
  logger?: Logger | undefined
}

export interface ResolvedOptions {
  readonly models: ModelLocations
  readonly store: ResolvedStoreOptions
  readonly local: ResolvedLocalOptions
  readonly engine: Engine | undefined
  readonly access: AccessOptions
  readonly database: DatabaseLocation | undefined
  readonly metering: ResolvedMeteringOptions
  readonly logger: Logger | undefined
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
    'engine',
    'database',
    'prices',
    'tiers',
    'modelLimits',
    'maxQueued',
    'spendingWarnings',
    'usage',
    'logger',
  ])
  checkMethods('engine', options.engine, [
    'generate',
    'countTokens',
    'render',
    'embed',
    'rerank',
    'tokenize',
    'detokenize',
    'load',
    'unload',
    'loaded',
    'close',
  ])
  checkMethods('logger', options.logger, ['warn', 'error'])
  const models = resolveModels(
    options.models,
    environment.OLLAMA_MODELS || join(homedir(), '.ollama', 'models'),
  )
  // Said here, beside `index.ts`: from there it is found in the packed form, too.
  const modelProcess = fileURLToPath(new URL('./engine/local/model-process/main.js', import.meta.url))
  return {
    models,
    store: resolveStoreOptions(options.store, environment),
    local: resolveLocalOptions(options.local, environment, modelProcess),
    engine: options.engine,
    access: { auth: options.auth, origins: options.origins, scopes: options.scopes },
    database: resolveDatabase(options, models),
    metering: resolveMeteringOptions(options),
    logger: options.logger,
  }
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
    "With `auth: 'keys'` or `prices`, and no folder of models, expected the option `database`",
  )
}
