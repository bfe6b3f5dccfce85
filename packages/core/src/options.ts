/** Every option of `createLlm`: its meaning, default and check. The app's environment is read here and nowhere else. */
import { availableParallelism, homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { AccessOptions } from './access.ts'
import type { Engine } from './engine/engine.ts'
import { checkLimits } from './limits/demand.ts'
import type { Limits } from './limits/limits.ts'
import type { Logger } from './logger.ts'
import type { DatabaseLocation } from './storage/open.ts'
import { type ByteSize, type Duration, readDuration, toBytes, toMs } from './units.ts'
import { maxPricePerMillionUsd, type Price, type Prices } from './usage/pricing.ts'
import type { SpendWarningOptions } from './usage/warnings.ts'

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
   * @default with `auth: 'keys'` the file `modelmount.db` in the first folder of models; else none is opened
   */
  database?: DatabaseLocation | undefined

  /**
   * What a million tokens of a model cost, in dollars; `*` is all others. With it there is a ledger.
   *
   * @default none: what is used is counted where there is a database, and costs nothing
   */
  prices?: Prices | undefined

  /** Limits by name, for callers that name one: each caller has its own. */
  tiers?: Readonly<Record<string, Limits>> | undefined

  /** Limits beside those of callers. */
  limits?: LimitOptions | undefined

  /** When to say that a spending limit is near. The channel `modelmount:spend` of `node:diagnostics_channel` says it, too. */
  spendWarnings?: SpendWarningOptions | undefined

  /**
   * Where failures go that clients cannot help. A pino logger fits as it is.
   *
   * @default nothing is logged
   */
  logger?: Logger | undefined
}

export interface LimitOptions {
  /** By model, of all its callers together. */
  readonly models?: Readonly<Record<string, Limits>> | undefined

  /**
   * How many calls wait for each model, one of each caller in turn; of one too many, the caller with most of them hears it.
   *
   * @default 448 where callers are told apart; else what the engine lets wait
   */
  readonly queue?: number | undefined
}

/** A model whose trained weights are changed by LoRA adapters. */
export interface AdaptedModel {
  /** `pirate` means `pirate:latest`. */
  readonly name: string
  /** The GGUF file of the model that the adapters were trained for. */
  readonly file: string
  /** GGUF files, of which all are in force together. */
  readonly adapters: readonly {
    readonly file: string
    /** How much of it is added. @default 1 */
    readonly scale?: number
  }[]
}

export interface StoreOptions {
  /**
   * Registries that may be asked for models, as `host` or `host:port`. They are spoken to over https, and not at private
   * addresses.
   *
   * @default ['registry.ollama.ai', 'hf.co', 'huggingface.co']
   */
  registries?: readonly string[] | undefined

  /**
   * Registries of your own, beside those: they may lie at private addresses, and are spoken to over http where a call says
   * `insecure`.
   *
   * @default none
   */
  privateRegistries?: readonly string[] | undefined

  /**
   * What the blobs in the folder that is written to take at most: bytes, or `'200gb'`. What would be more is refused.
   *
   * @default as much as the disk holds
   */
  maxBytes?: ByteSize | undefined

  /**
   * Whether blobs are removed that no model has any more once one is replaced. What is deleted, is in any case.
   *
   * @default not `$OLLAMA_NOPRUNE`
   */
  prune?: boolean | undefined
}

export interface LocalOptions {
  /**
   * Compute threads, at most as many as the machine has cores: more make everything many times slower.
   *
   * @default one less than the machine has cores, at least 1
   */
  threads?: number | undefined

  /**
   * Tokens that a prompt and its answer may have together. Memory for all of them is taken at load. Calls may
   * say otherwise.
   *
   * @default `$OLLAMA_CONTEXT_LENGTH`, else 4096; never more than the model was trained for
   */
  contextSize?: number | undefined

  /**
   * The most that a call may ask for, in tokens; one that asks for more is refused.
   *
   * @default what the model was trained for; a call that asks for more gets that
   */
  maxContextSize?: number | undefined

  /**
   * How many answers are made side by side; each takes a context of its own. Fewer where there is no memory for them.
   *
   * @default `$OLLAMA_NUM_PARALLEL`, else 4
   */
  parallel?: number | undefined

  /**
   * How many models are in memory at the same time. Where one more is asked for, one that nobody uses goes.
   *
   * @default `$OLLAMA_MAX_LOADED_MODELS`, else 3
   */
  maxLoadedModels?: number | undefined

  /**
   * How many layers of a model a graphics card takes: so many, `'max'` for all, which fails where they do not fit,
   * or `'auto'` for as many as fit. Without a card it makes no difference.
   *
   * @default 'auto'
   */
  gpuLayers?: number | 'auto' | 'max' | undefined

  /**
   * A way to compute that takes less memory. Without a graphics card it reads long prompts faster, and short questions
   * behind a long cached beginning slower.
   *
   * @default `$OLLAMA_FLASH_ATTENTION`, else where the model and the machine can
   */
  flashAttention?: boolean | undefined

  /**
   * How exactly a context is kept: `'q8_0'` takes half the memory of `'f16'`, `'q4_0'` a quarter. Without a graphics
   * card both are slower. A model that cannot have it gets `'f16'`, and the logger a warning.
   *
   * @default `$OLLAMA_KV_CACHE_TYPE`, else 'f16'
   */
  kvCacheType?: 'f16' | 'q8_0' | 'q4_0' | undefined

  /**
   * What the states of prompts take at most that are kept for the next call, of each model: bytes, or `'2gb'`; 0 keeps
   * none. They are in memory where there is a RAM disk with room, such as `/dev/shm`, else in the folder for temporary files.
   *
   * @default 1 GiB, or a quarter of the free memory where that is less
   */
  promptCache?: ByteSize | undefined

  /**
   * So long a model stays loaded that nobody uses: milliseconds, `'10m'` or `'forever'`. Calls may say otherwise.
   *
   * @default `$OLLAMA_KEEP_ALIVE`, else `'5m'`
   */
  keepAlive?: Duration | 'forever' | undefined

  /**
   * The file that runs beside the app, for bundlers that lose it.
   *
   * @default `@modelmount/core/model-process`
   */
  modelProcess?: string | undefined

  /**
   * The folder where model processes and apps meet: apps of one user that name the same share loaded models. It has to
   * be private (0700); else, or where it cannot be made, this app shares with nobody.
   *
   * @default `modelmount` in `$XDG_RUNTIME_DIR`, else one in the folder for temporary files
   */
  runFolder?: string | undefined
}

export interface ResolvedOptions {
  readonly models: readonly (string | AdaptedModel)[]
  readonly store: {
    readonly registries: {
      readonly hosts: readonly string[]
      readonly privateHosts: readonly string[]
      readonly keyFile: string
    }
    readonly maxBytes: number
    readonly prune: boolean
  }
  readonly local: {
    readonly threads: number | undefined
    readonly contextSize: number | undefined
    readonly maxContextSize: number | undefined
    readonly parallel: number | undefined
    readonly maxLoadedModels: number
    readonly gpuLayers: number | 'auto' | 'max'
    readonly flashAttention: boolean | undefined
    readonly kvCacheType: KvCacheType
    /** In bytes. */
    readonly promptCache: number | undefined
    /** In milliseconds. */
    readonly keepAlive: number | 'forever'
    readonly modelProcess: string
    readonly runFolder: string | undefined
  }
  readonly engine: Engine | undefined
  readonly access: AccessOptions
  readonly database: DatabaseLocation | undefined
  readonly metering: {
    readonly prices: Prices
    readonly tiers: Readonly<Record<string, Limits>>
    readonly modelLimits: Readonly<Record<string, Limits>>
    readonly queue: { readonly places: number; readonly maxWaiting: number } | undefined
    readonly warnings: SpendWarningOptions
  }
  readonly logger: Logger | undefined
}

const kvCacheTypes = ['f16', 'q8_0', 'q4_0'] as const
type KvCacheType = (typeof kvCacheTypes)[number]

/** The largest models are trained for ten million tokens. */
const maxContext = 2 ** 24
/** No engine has more sequences. */
const maxParallel = 256
/** More than anybody has. */
const maxModels = 1_024
const maxLayers = 65_536

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
    'limits',
    'spendWarnings',
    'logger',
  ])
  checkKeys('store.', options.store ?? {}, ['registries', 'privateRegistries', 'maxBytes', 'prune'])
  checkKeys('local.', options.local ?? {}, [
    'threads',
    'contextSize',
    'maxContextSize',
    'parallel',
    'maxLoadedModels',
    'gpuLayers',
    'flashAttention',
    'kvCacheType',
    'promptCache',
    'keepAlive',
    'modelProcess',
    'runFolder',
  ])
  methods('engine', options.engine, [
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
  methods('logger', options.logger, ['warn', 'error'])
  const given = modelsOf(options.models) ?? [
    environment.OLLAMA_MODELS || join(homedir(), '.ollama', 'models'),
  ]
  const models = given.map(withHome)
  for (const model of models) if (typeof model !== 'string') expectEachOnce(model)
  const variable = (name: string): string | undefined => clean(environment[name])
  const wholeNumber = (name: string, least: number, most: number): number | undefined => {
    // Ollama's way to say "as you like".
    const given = variable(name) ?? '0'
    return given === '0' ? undefined : count(`$${name}`, Number(given), least, most)
  }
  const {
    threads,
    contextSize = wholeNumber('OLLAMA_CONTEXT_LENGTH', 16, maxContext),
    maxContextSize,
    parallel = wholeNumber('OLLAMA_NUM_PARALLEL', 1, maxParallel),
    maxLoadedModels = wholeNumber('OLLAMA_MAX_LOADED_MODELS', 1, maxModels) ?? 3,
    gpuLayers = 'auto',
    flashAttention = toggle('$OLLAMA_FLASH_ATTENTION', variable('OLLAMA_FLASH_ATTENTION')),
    kvCacheType = cacheType(
      '$OLLAMA_KV_CACHE_TYPE',
      variable('OLLAMA_KV_CACHE_TYPE')?.toLowerCase() ?? 'f16',
    ),
    // Said here, beside `index.ts`: from there it is found in the packed form, too.
    modelProcess = fileURLToPath(new URL('./engine/local/process/main.js', import.meta.url)),
  } = options.local ?? {}
  if (flashAttention !== undefined && typeof flashAttention !== 'boolean')
    throw new TypeError(`Expected \`local.flashAttention\` to be a boolean, got ${shown(flashAttention)}`)
  if (flashAttention === false && kvCacheType !== 'f16')
    throw new TypeError(
      `Expected flash attention for the KV cache type ${kvCacheType}: set \`local.kvCacheType\` to 'f16', or \`local.flashAttention\` to true`,
    )
  return {
    models,
    store: storeOf(options.store, variable),
    local: {
      threads: count('local.threads', threads, 1, availableParallelism()),
      contextSize: count('local.contextSize', contextSize, 16, maxContext),
      maxContextSize: count('local.maxContextSize', maxContextSize, 16, maxContext),
      parallel: count('local.parallel', parallel, 1, maxParallel),
      maxLoadedModels: count('local.maxLoadedModels', maxLoadedModels, 1, maxModels),
      gpuLayers: layers(gpuLayers),
      flashAttention,
      kvCacheType: cacheType('local.kvCacheType', kvCacheType),
      promptCache: options.local?.promptCache === undefined ? undefined : toBytes(options.local.promptCache),
      keepAlive: keepAlive(options.local?.keepAlive, variable('OLLAMA_KEEP_ALIVE')),
      modelProcess,
      runFolder: options.local?.runFolder ?? runFolder(environment),
    },
    engine: options.engine,
    access: { auth: options.auth, origins: options.origins, scopes: options.scopes },
    database: databaseOf(options, models),
    metering: meteringOf(options),
    logger: options.logger,
  }
}

function databaseOf(
  { database, auth, prices }: LlmOptions,
  models: ResolvedOptions['models'],
): ResolvedOptions['database'] {
  if (typeof database === 'string' && database !== '') return expandHome(database)
  if (database !== undefined) {
    methods('database', database as object, ['query', 'connect'])
    return database
  }
  if (String(auth) !== 'keys' && prices === undefined) return undefined
  const folder = models.find((model) => typeof model === 'string' && !model.toLowerCase().endsWith('.gguf'))
  if (typeof folder === 'string') return join(folder, 'modelmount.db')
  throw new TypeError(
    "With `auth: 'keys'` or `prices`, and no folder of models, expected the option `database`",
  )
}

/** So many calls are inside of the engine, which knows who of them is next; all others wait outside. */
const places = 64
/** Together as many as the engine takes. */
const maxWaiting = 448

function meteringOf(options: LlmOptions): ResolvedOptions['metering'] {
  const { prices = {}, tiers = {}, limits = {}, spendWarnings: warnings = {}, auth = 'anonymous' } = options
  checkKeys('limits.', limits, ['models', 'queue'])
  checkKeys('spendWarnings.', warnings, ['thresholds', 'onWarning'])
  const { models: modelLimits = {}, queue } = limits
  for (const one of [...Object.values(tiers), ...Object.values(modelLimits)]) {
    checkKeys('limits.', one, ['requestsPerMinute', 'tokensPerMinute', 'concurrent'])
    checkLimits(one)
  }
  for (const [model, price] of Object.entries(prices)) checkPrice(model, price)
  for (const threshold of warnings.thresholds ?? [])
    if (!(threshold > 0 && threshold <= 1))
      throw new TypeError(
        `Expected \`spendWarnings.thresholds\` to be above 0 and at most 1, got ${shown(threshold)}`,
      )
  count('limits.queue', queue, 0, 1e6)
  const isQueued = queue !== undefined || auth !== 'anonymous'
  return {
    prices,
    tiers,
    modelLimits,
    queue: isQueued ? { places, maxWaiting: queue ?? maxWaiting } : undefined,
    warnings,
  }
}

function checkPrice(model: string, price: Price): void {
  checkKeys(`prices['${model}'].`, price, [...priceNames])
  for (const name of priceNames) {
    const usd = price[name]
    const isOptional = name !== 'inputPerMillionUsd' && name !== 'outputPerMillionUsd'
    if (usd === undefined && isOptional) continue
    if (!(typeof usd === 'number' && usd >= 0 && usd <= maxPricePerMillionUsd))
      throw new TypeError(
        `Expected \`prices['${model}'].${name}\` to be a number of dollars from 0 to ${maxPricePerMillionUsd}, got ${shown(usd)}`,
      )
  }
}

const priceNames = [
  'inputPerMillionUsd',
  'outputPerMillionUsd',
  'cachedInputPerMillionUsd',
  'cacheWritePerMillionUsd',
] as const satisfies readonly (keyof Price)[]

/** A misspelt option would be ignored in silence, and the built-in model answer instead. */
export function checkKeys(group: string, options: object, names: readonly string[]): void {
  if (typeof options !== 'object')
    throw new TypeError(`Expected options, got ${String(options)} (${typeof options})`)
  for (const name of Object.keys(options)) {
    if (!names.includes(name))
      throw new TypeError(
        `Unknown option \`${group}${name}\`, expected one of: ${names.map((one) => group + one).join(', ')}`,
      )
  }
}

function methods(option: string, value: object | undefined, names: readonly string[]): void {
  for (const name of names) {
    if (value !== undefined && typeof (value as Record<string, unknown>)?.[name] !== 'function')
      throw new TypeError(`Expected \`${option}\` to have the method ${name}()`)
  }
}

function modelsOf(models: LlmOptions['models']): ResolvedOptions['models'] | undefined {
  if (models === undefined) return undefined
  const list: readonly unknown[] = Array.isArray(models) ? models : [models]
  if (list.every((one) => isText(one) || isAdapted(one))) return list as ResolvedOptions['models']
  throw new TypeError(
    `Expected \`models\` to be a path or a list of paths and of { name, file, adapters: [{ file, scale }] }, got ${JSON.stringify(models)}`,
  )
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''

function isAdapted(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  checkKeys('models[].', value, ['name', 'file', 'adapters'])
  const { name, file, adapters } = value as Partial<AdaptedModel>
  return isText(name) && isText(file) && Array.isArray(adapters) && adapters.every(isAdapter)
}

function isAdapter(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  checkKeys('models[].adapters[].', value, ['file', 'scale'])
  const { file, scale = 1 } = value as AdaptedModel['adapters'][number]
  return isText(file) && Number.isFinite(scale)
}

const publicRegistries = ['registry.ollama.ai', 'hf.co', 'huggingface.co']

function storeOf(
  { registries = publicRegistries, privateRegistries = [], maxBytes, prune }: StoreOptions = {},
  variable: (name: string) => string | undefined,
): ResolvedOptions['store'] {
  if (prune !== undefined && typeof prune !== 'boolean')
    throw new TypeError(`Expected \`store.prune\` to be a boolean, got ${shown(prune)}`)
  return {
    registries: {
      hosts: hosts('store.registries', registries),
      privateHosts: hosts('store.privateRegistries', privateRegistries),
      // As the `ollama` command made it: its public half is what people register with their accounts.
      keyFile: join(homedir(), '.ollama', 'id_ed25519'),
    },
    maxBytes: maxBytes === undefined ? Number.POSITIVE_INFINITY : toBytes(maxBytes),
    prune: prune ?? !toggle('$OLLAMA_NOPRUNE', variable('OLLAMA_NOPRUNE')),
  }
}

function hosts(option: string, value: readonly string[]): readonly string[] {
  const isHost = (one: unknown): boolean =>
    typeof one === 'string' && /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i.test(one)
  if (Array.isArray(value) && value.every(isHost)) return value.map((one) => one.toLowerCase())
  throw new TypeError(
    `Expected \`${option}\` to be a list of hosts such as 'registry.example.com:5000', got ${JSON.stringify(value)}`,
  )
}

/** As Ollama reads its variables. Nothing for an empty one. */
const clean = (value: string | undefined): string | undefined =>
  value?.trim().replace(/^["']+|["']+$/g, '') || undefined

function count<T>(option: string, value: T, least: number, most: number): T {
  if (value === undefined) return value
  if (Number.isInteger(value) && Number(value) >= least && Number(value) <= most) return value
  throw new TypeError(
    `Expected \`${option}\` to be a whole number from ${least} to ${most}, got ${shown(value)}`,
  )
}

function layers(value: number | 'auto' | 'max'): number | 'auto' | 'max' {
  if (value === 'auto' || value === 'max') return value
  if (typeof value === 'number') return count('local.gpuLayers', value, 0, maxLayers)
  throw new TypeError(
    `Expected \`local.gpuLayers\` to be 'auto', 'max' or a whole number, got ${shown(value)}`,
  )
}

function cacheType(option: string, value: string): KvCacheType {
  const known = kvCacheTypes.find((type) => type === value)
  if (known) return known
  throw new TypeError(`Expected \`${option}\` to be one of ${kvCacheTypes.join(', ')}, got ${shown(value)}`)
}

/** The spellings of Go. */
function toggle(option: string, value: string | undefined): boolean | undefined {
  if (value === undefined) return undefined
  if (/^(?:1|t|T|TRUE|true|True)$/.test(value)) return true
  if (/^(?:0|f|F|FALSE|false|False)$/.test(value)) return false
  throw new TypeError(`Expected \`${option}\` to be 1 or 0, got ${shown(value)}`)
}

const shown = (value: unknown): string => `${String(value)} (${typeof value})`

/** In Ollama's environment variable a bare number is seconds, and what is negative means for ever. */
function keepAlive(
  option: Duration | 'forever' | undefined,
  variable: string | undefined,
): number | 'forever' {
  if (option === 'forever') return option
  if (option !== undefined) return toMs(option)
  if (!variable) return toMs('5m')
  const ms = /^[+-]?\d+$/.test(variable) ? Number(variable) * 1_000 : readDuration(variable)
  if (ms === undefined)
    throw new TypeError(`Expected $OLLAMA_KEEP_ALIVE to be a duration such as 5m, got '${variable}'`)
  return ms < 0 ? 'forever' : ms
}

const runFolder = ({ XDG_RUNTIME_DIR }: NodeJS.ProcessEnv): string | undefined =>
  XDG_RUNTIME_DIR ? join(XDG_RUNTIME_DIR, 'modelmount') : undefined

const expandHome = (path: string): string =>
  /^~(?=$|[\\/])/.test(path) ? join(homedir(), path.slice(1)) : path

const withHome = (given: string | AdaptedModel): string | AdaptedModel =>
  typeof given === 'string'
    ? expandHome(given)
    : {
        ...given,
        file: expandHome(given.file),
        adapters: given.adapters.map((adapter) => ({ ...adapter, file: expandHome(adapter.file) })),
      }

/** Of two scales for one file the engine would take the last. */
function expectEachOnce({ name, adapters }: AdaptedModel): void {
  const files = adapters.map(({ file }) => resolve(file))
  const twice = files.find((file, index) => files.indexOf(file) !== index)
  if (twice === undefined) return
  throw new TypeError(
    `Expected the adapters of the model "${name}" to be different files, but ${twice} is named twice`,
  )
}
