/** The options of `modelmount serve`, from its flags, the environment and the configuration file, in this order. */
import { basename } from 'node:path'
import type { AdaptedModel, ByteSize, LlmOptions, LocalOptions, Prices } from '@modelmount/core'
import { localOrigins } from '@modelmount/core/http'
import { databaseOf, modelsFolder } from './database.ts'
import { optionsInEnvironment } from './environment.ts'
import { isLoopback } from './host.ts'
import { splitList } from './list.ts'

export interface ServeOptions {
  readonly host: string
  readonly port: number
  /** Path of a file with options of `createLlm()`. */
  readonly config?: string
  readonly models?: string
  readonly model?: string
  /** LoRA adapters of `model`. */
  readonly adapter?: AdaptedModel['adapters']
  readonly threads?: number
  readonly context?: number
  readonly maxContext?: number
  readonly parallel?: number
  readonly maxLoaded?: number
  readonly maxQueued?: number
  readonly queueTimeout?: LlmOptions['queueTimeout']
  readonly gpuLayers?: LocalOptions['gpuLayers']
  readonly flashAttention?: boolean
  readonly kvType?: LocalOptions['kvCacheType']
  readonly keepAlive?: LocalOptions['keepAlive']
  readonly reloadCooldown?: LocalOptions['reloadCooldown']
  /**
   * `true` serves callers on this machine only. `keys` requires an API key. `false` serves other machines
   * without authentication.
   *
   * @default true
   */
  readonly auth?: 'keys' | boolean
  /** Whether to serve the admin API under `/admin`. */
  readonly admin?: boolean
  /** Whether to serve the console under `/console`. */
  readonly console?: boolean
  /** Whether to serve Prometheus' metrics under `/metrics`. */
  readonly metrics?: boolean
  /** Port of the loopback address that serves the metrics without a key. */
  readonly metricsPort?: number
  /** Whether each call has a line on stderr. */
  readonly accessLog?: boolean
  /** Origins of web pages, in addition to the default ones. */
  readonly origins?: readonly string[]
  /** The folder with `modelmount.db`, or `postgres://…`. */
  readonly data?: string
  /** Engines on other servers, as `NAME=URL`. */
  readonly upstream?: readonly string[]
  /** Names of environment variables that model processes inherit. */
  readonly passEnv?: readonly string[]
  readonly registry?: readonly string[]
  readonly privateRegistry?: readonly string[]
  readonly storeMax?: ByteSize
  /** Path of a JSON file. */
  readonly prices?: string
  /** How long running answers may take to end after SIGTERM or Ctrl-C, in seconds. @default 10 */
  readonly drain?: number
}

/** The contents of the files that flags name. */
export interface ServeFiles {
  /** The file of `--config`. Its paths are absolute. */
  readonly config: LlmOptions
  /** The file of `--prices`. */
  readonly prices: Prices | undefined
}

/** Whether the server serves other machines without authentication. */
export const isOpen = ({ host, auth = true }: ServeOptions, { config }: ServeFiles): boolean =>
  !isLoopback(host) && auth !== 'keys' && config.auth !== 'keys'

/** Returns the options for `createLlm()`, without a logger. Throws an `Error` that names the flag. */
export function toLlmOptions(flags: ServeOptions, files: ServeFiles): LlmOptions {
  const config = withoutOptions(files.config, optionsInEnvironment(process.env))
  const { local, store, batches, ...rest } = config
  const open = isOpen(flags, files)
  const auth = open ? 'host' : flags.auth === 'keys' ? 'keys' : config.auth
  const models = modelsOf(flags) ?? config.models
  const prices = files.prices ?? config.prices
  const database =
    flags.data === undefined
      ? // Most pages of the console need a database.
        (config.database ?? (flags.console ? defaultDatabaseOf(models) : undefined))
      : databaseOf(flags.data)
  const needsDatabase = auth === 'keys' || prices !== undefined
  checkAccess(flags, files)
  if (needsDatabase && database === undefined && flags.models === undefined && flags.model !== undefined)
    fail('Keys and usage need a folder, and --model has none. Add --data FOLDER.')
  return {
    ...rest,
    auth,
    // If other machines need no API key, all callers may only use models. If only this machine is served, its
    // callers may also add and delete models. API keys have their own scopes.
    scopes: config.scopes ?? (open ? undefined : ['inference', 'models']),
    origins: originsOf(flags, open) ?? config.origins ?? (open ? [] : undefined),
    database,
    models,
    local: mergeGiven(local, {
      threads: flags.threads,
      contextSize: flags.context,
      maxContextSize: flags.maxContext,
      parallel: flags.parallel,
      maxLoadedModels: flags.maxLoaded,
      gpuLayers: flags.gpuLayers,
      flashAttention: flags.flashAttention,
      kvCacheType: flags.kvType,
      keepAlive: flags.keepAlive,
      reloadCooldown: flags.reloadCooldown,
      environment: flags.passEnv,
    }),
    maxQueued: flags.maxQueued ?? config.maxQueued,
    queueTimeout: flags.queueTimeout ?? config.queueTimeout,
    store: mergeGiven(store, {
      registries: flags.registry,
      privateRegistries: flags.privateRegistry,
      maxBytes: flags.storeMax,
    }),
    prices,
    accessLog: flags.accessLog ?? config.accessLog,
    batches: mergeGiven(
      { database: needsDatabase || database !== undefined ? undefined : defaultDatabaseOf(models) },
      batches,
    ),
  }
}

function checkAccess(
  { host, auth = true, admin, console, config: file }: ServeOptions,
  { config }: ServeFiles,
): void {
  if (config.auth === 'host')
    fail(
      `${file}: Expected \`auth\` to be 'keys' or 'anonymous', got 'host', which needs an app around the routes.`,
    )
  if (auth === false && config.auth === 'keys')
    fail(`--no-auth and \`auth: 'keys'\` in ${file} exclude each other: remove one of them.`)
  const usesKeys = auth === 'keys' || config.auth === 'keys'
  if (!isLoopback(host) && !usesKeys && auth)
    fail(
      `Other machines can reach ${host}. Add --auth keys to require an API key, or --no-auth to serve everyone.`,
    )
  if (console && !isLoopback(host) && !usesKeys)
    fail(`Other machines can reach ${host}: the console then requires API keys. Add --auth keys.`)
  if (admin && !usesKeys) fail('--admin requires API keys. Add --auth keys.')
}

/** Returns the models that flags name. With LoRA adapters, a model still has the name of its file. */
function modelsOf({ model, models, adapter: adapters }: ServeOptions): LlmOptions['models'] {
  if (adapters && model === undefined) fail('--adapter requires --model FILE.')
  const own =
    adapters && model !== undefined ? { name: basename(model, '.gguf'), file: model, adapters } : model
  const given = [own, models].filter((source) => source !== undefined)
  return given.length > 0 ? given : undefined
}

/**
 * As with Ollama, these origins are allowed in addition to pages from this machine. If other machines are served
 * without authentication, no page is allowed by default.
 */
function originsOf({ origins }: ServeOptions, open: boolean): readonly string[] | undefined {
  const [source, list] =
    origins === undefined
      ? ['OLLAMA_ORIGINS', splitList(process.env.OLLAMA_ORIGINS ?? '')]
      : ['--origins', origins]
  for (const origin of list)
    if (origin !== '*' && !/^[\w+.-]+:\/\/./.test(origin))
      fail(`${source}: Expected origins such as https://app.example.com, or *, got '${origin}'.`)
  return list.length > 0 ? [...(open ? [] : localOrigins), ...list] : undefined
}

/**
 * Returns the file for batches and the console of a server without another database. The server creates it with the
 * first batch. Returns undefined if no location of models is a folder.
 */
function defaultDatabaseOf(models: LlmOptions['models']): string | undefined {
  const locations = models === undefined ? [modelsFolder()] : [models].flat()
  const folder = locations.find((one) => typeof one === 'string' && !one.toLowerCase().endsWith('.gguf'))
  return typeof folder === 'string' ? databaseOf(folder) : undefined
}

/** Values of `over` that are given take precedence. Anything but an object stays as it is, for core's checks. */
function mergeGiven<Group extends object>(
  group: Group | undefined,
  over: Group | undefined,
): Group | undefined {
  if (over !== undefined && !isRecord(over)) return over
  if (group !== undefined && !isRecord(group)) return group
  const given = Object.entries(over ?? {}).filter(([, value]) => value !== undefined)
  return { ...group, ...Object.fromEntries(given) } as Group
}

/** @param names such as `local.keepAlive` */
function withoutOptions(options: LlmOptions, names: readonly string[]): LlmOptions {
  const result: Record<string, unknown> = { ...options }
  for (const name of names) {
    const [group = '', member] = name.split('.')
    const value = result[group]
    if (member === undefined) delete result[group]
    else if (isRecord(value)) result[group] = { ...value, [member]: undefined }
  }
  return result
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function fail(message: string): never {
  throw new Error(message)
}
