/** Every option of `createLlm`: its meaning, default and check. The app's environment is read here and nowhere else. */
import { availableParallelism, homedir } from 'node:os'
import { join } from 'node:path'
import type { AccessOptions } from './access.ts'
import type { Engine } from './engine/engine.ts'
import type { Logger } from './logger.ts'
import { type Duration, readDuration, toMs } from './units.ts'

export interface LlmOptions extends AccessOptions {
  /**
   * Where models are: folders whose `*.gguf` files are served by their stem, or single such
   * files. Of two with the same name the earlier wins, and all win over the built-in one. A path that is
   * given has to exist; the default one need not.
   *
   * @default `$OLLAMA_MODELS`, else `~/.ollama/models`
   */
  models?: string | readonly string[] | undefined

  /** How models are loaded on this machine. */
  local?: LocalOptions | undefined

  /**
   * What makes the tokens; given, nothing is loaded here. For tests: `scriptedEngine()`.
   *
   * @default the engine on this machine, over node-llama-cpp
   */
  engine?: Engine | undefined

  /**
   * Where failures go that clients cannot help. A pino logger fits as it is.
   *
   * @default nothing is logged
   */
  logger?: Logger | undefined
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
   * How many answers are made side by side; each takes a context of its own. Fewer where there is no memory for them.
   *
   * @default `$OLLAMA_NUM_PARALLEL`, else 4
   */
  parallel?: number | undefined

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

  maxLoadedModels?: number | undefined
}

export interface ResolvedOptions {
  readonly models: readonly string[]
  readonly local: {
    readonly threads: number | undefined
    readonly contextSize: number | undefined
    readonly parallel: number | undefined
    /** In milliseconds. */
    readonly keepAlive: number | 'forever'
    readonly modelProcess: string | undefined
    readonly runFolder: string | undefined
    readonly maxLoadedModels: number | undefined
  }
  readonly engine: Engine | undefined
  readonly access: AccessOptions
  readonly logger: Logger | undefined
}

/** No engine has more sequences. */
const maxParallel = 256

export function resolveOptions(
  options: LlmOptions,
  environment: NodeJS.ProcessEnv = process.env,
): ResolvedOptions {
  checkKeys('', options, ['models', 'local', 'auth', 'origins', 'engine', 'logger'])
  checkKeys('local.', options.local ?? {}, [
    'threads',
    'contextSize',
    'parallel',
    'keepAlive',
    'modelProcess',
    'runFolder',
    'maxLoadedModels',
  ])
  methods('engine', options.engine, [
    'generate',
    'countTokens',
    'render',
    'load',
    'unload',
    'loaded',
    'close',
  ])
  methods('logger', options.logger, ['warn', 'error'])
  const models = paths(options.models) ?? [environment.OLLAMA_MODELS || join(homedir(), '.ollama', 'models')]
  const variable = (name: string, least: number, most: number): number | undefined => {
    // Empty or 0 is Ollama's way to say "as you like".
    const given = environment[name] || '0'
    return given === '0' ? undefined : count(`$${name}`, Number(given), least, most)
  }
  const {
    threads,
    contextSize = variable('OLLAMA_CONTEXT_LENGTH', 16, 2 ** 30),
    parallel = variable('OLLAMA_NUM_PARALLEL', 1, maxParallel),
  } = options.local ?? {}
  return {
    models: models.map(expandHome),
    local: {
      threads: count('local.threads', threads, 1, availableParallelism()),
      contextSize: count('local.contextSize', contextSize, 16, 2 ** 30),
      parallel: count('local.parallel', parallel, 1, maxParallel),
      keepAlive: keepAlive(options.local?.keepAlive, environment.OLLAMA_KEEP_ALIVE),
      modelProcess: options.local?.modelProcess,
      maxLoadedModels: count('local.maxLoadedModels', options.local?.maxLoadedModels, 1, 1_000),
      runFolder: options.local?.runFolder ?? runFolder(environment),
    },
    engine: options.engine,
    access: { auth: options.auth, origins: options.origins },
    logger: options.logger,
  }
}

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

function paths(models: LlmOptions['models']): readonly string[] | undefined {
  if (models === undefined) return undefined
  const list: readonly unknown[] = Array.isArray(models) ? models : [models]
  if (list.every((path) => typeof path === 'string' && path !== '')) return list as string[]
  throw new TypeError(`Expected \`models\` to be a path or a list of paths, got ${JSON.stringify(models)}`)
}

function count(option: string, value: unknown, least: number, most: number): number | undefined {
  if (value === undefined) return undefined
  if (Number.isInteger(value) && Number(value) >= least && Number(value) <= most) return Number(value)
  throw new TypeError(
    `Expected \`${option}\` to be a whole number from ${least} to ${most}, got ${String(value)} (${typeof value})`,
  )
}

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
