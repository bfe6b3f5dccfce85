/** Options for loading models on this machine. */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { type ByteSize, type Duration, parseDuration, toBytes, toMs } from '../units.ts'
import { checkInteger, checkKeys, describeValue, parseBoolean, parseOption, trimVariable } from './check.ts'

/** How models run on this machine. */
export interface LocalOptions {
  /**
   * Number of compute threads, from 1 to the number of cores. More threads than cores make a model many times
   * slower.
   *
   * @default the number of cores minus 1, but at least 1
   */
  threads?: number | undefined

  /**
   * Context size in tokens, for a prompt and its output together, at least 16. A model allocates memory for
   * the whole context when it is loaded. Calls with the scope `models` may request another size.
   *
   * @default `$OLLAMA_CONTEXT_LENGTH`, else 4096; never more than the model was trained for
   */
  contextSize?: number | undefined

  /**
   * Largest context size that a call may request, in tokens, at least 16. A call that requests more is
   * rejected.
   *
   * @default none: a call that requests more than the trained size gets the trained size
   */
  maxContextSize?: number | undefined

  /**
   * Number of sequences that a model decodes in parallel, from 1 to 256. Each sequence has its own context.
   * The model process uses fewer if memory is short.
   *
   * @default `$OLLAMA_NUM_PARALLEL`, else 4
   */
  parallel?: number | undefined

  /**
   * Maximum number of models in memory, from 1 to 1,024. To load one more, an idle model is unloaded.
   *
   * @default `$OLLAMA_MAX_LOADED_MODELS`, else 3
   */
  maxLoadedModels?: number | undefined

  /**
   * How many calls may be in the engine at once, for all models together, from 1 to 1,000,000. Calls that only
   * count, render or tokenize have a second bound of the same size. Further calls are rejected with 503. While
   * the calls of one tenant reach a bound, each other tenant may exceed it by its share, at least one call. All
   * shares are equal, whatever the weights of the tenants. At most `maxCalls` tenants can have calls in the engine,
   * and together three times as many calls.
   *
   * @default `maxAdmitted` plus `maxQueued`, times `maxLoadedModels`, but at least 512
   */
  maxCalls?: number | undefined

  /**
   * Total length of the prompts of the calls in the engine, in characters, from 1,048,576 to 68,719,476,736.
   * Like `maxCalls`, it bounds the calls that only count, render or tokenize separately, and gives each tenant a
   * share. Further calls are rejected with 503. Beyond twice the bound, a tenant gets only short prompts, so the
   * total stays within four times the bound. A prompt that is longer than the bound is rejected with 400.
   *
   * @default 67,108,864
   */
  maxPromptCharacters?: number | undefined

  /**
   * Number of a model's layers on the GPU. `'max'` means all layers. With `'max'` or a number, a load waits up to
   * five minutes for memory of busy models, and fails if the layers do not fit. `'auto'` means as many as fit: if
   * these are not all, the logger gets a warning. Without a GPU, models run on the CPU.
   *
   * @default 'auto'
   */
  gpuLayers?: number | 'auto' | 'max' | undefined

  /**
   * Whether models use flash attention, which takes less memory. With it, a CPU evaluates long prompts
   * faster, but short prompts after a long cached prefix more slowly.
   *
   * @default `$OLLAMA_FLASH_ATTENTION`, else true if the model and the machine support it
   */
  flashAttention?: boolean | undefined

  /**
   * KV cache data type: `'q8_0'` takes half the memory of `'f16'`, `'q4_0'` a quarter. Both are slower than
   * `'f16'` on a CPU. A model that does not support the type gets `'f16'`, with a warning in the log.
   *
   * @default `$OLLAMA_KV_CACHE_TYPE`, else 'f16'
   */
  kvCacheType?: 'f16' | 'q8_0' | 'q4_0' | undefined

  /**
   * Maximum size of the prompt cache of each model: bytes, or `'2gb'`. 0 disables the cache. The cache is on
   * the RAM disk `/dev/shm` if there is enough space, else in the folder for temporary files.
   *
   * @default 1 GiB, or a quarter of the free memory if that is less
   */
  promptCache?: ByteSize | undefined

  /**
   * Idle timeout of a loaded model: milliseconds, `'10m'` or `'forever'`. Calls with the scope `models` may
   * override it.
   *
   * @default `$OLLAMA_KEEP_ALIVE`, else `'5m'`
   */
  keepAlive?: Duration | 'forever' | undefined

  /**
   * How long a freshly loaded model serves before a call that sets another context size may reload it, or a
   * call for another model may evict it: milliseconds or `'10s'`, from 0 to an hour. The call waits. Other calls
   * do not.
   *
   * @default '5s'
   */
  reloadCooldown?: Duration | undefined

  /**
   * Path of the entry file of the model process. Set this option if a bundler does not include the file.
   *
   * @default `@modelmount/core/model-process`
   */
  modelProcessPath?: string | undefined

  /**
   * Names of further environment variables that model processes inherit, such as `'LD_PRELOAD'`. By default, they
   * inherit `PATH`, `HOME`, folders for temporary files and libraries, `XDG_*`, the locale, and what llama.cpp and
   * drivers read, such as `GGML_*`, `CUDA_*`, `HIP_*` and `VK_*`. A model process never inherits `NODE_OPTIONS`.
   *
   * @default none
   */
  environment?: readonly string[] | undefined

  /**
   * The folder for the sockets of model processes. Apps of one user with the same folder share loaded models.
   * If the folder is not private (mode 0700) or cannot be created, this app does not share its models.
   *
   * @default `modelmount` in `$XDG_RUNTIME_DIR`, else a folder per user in the folder for temporary files
   */
  runtimeDir?: string | undefined
}

const kvCacheTypes = ['f16', 'q8_0', 'q4_0'] as const
type KvCacheType = (typeof kvCacheTypes)[number]

/** Upper bound in tokens. The largest trained context of any model is ten million. */
export const maxContext = 2 ** 24
/** Maximum number of sequences in llama.cpp. */
export const maxParallel = 256
/** Upper bound. No real setup has so many models in memory. */
const maxModels = 1_024
const maxLayers = 65_536
const maxReloadCooldownMs = 3_600_000

export interface ResolvedLocalOptions {
  readonly threads: number | undefined
  readonly contextSize: number | undefined
  readonly maxContextSize: number | undefined
  readonly parallel: number
  readonly maxLoadedModels: number
  /** Undefined if the option is not set. */
  readonly maxCalls: number | undefined
  readonly maxPromptCharacters: number
  readonly gpuLayers: number | 'auto' | 'max'
  readonly flashAttention: boolean | undefined
  readonly kvCacheType: KvCacheType
  /** In bytes. */
  readonly promptCache: number | undefined
  /** In milliseconds. */
  readonly keepAlive: number | 'forever'
  /** In milliseconds. */
  readonly reloadCooldown: number
  readonly modelProcessPath: string
  readonly environment: readonly string[]
  readonly runtimeDir: string | undefined
}

const localOptionNames = [
  'threads',
  'contextSize',
  'maxContextSize',
  'parallel',
  'maxLoadedModels',
  'maxCalls',
  'maxPromptCharacters',
  'gpuLayers',
  'flashAttention',
  'kvCacheType',
  'promptCache',
  'keepAlive',
  'reloadCooldown',
  'modelProcessPath',
  'environment',
  'runtimeDir',
] as const satisfies readonly (keyof LocalOptions)[]

/** @param defaultModelProcess path of the entry file in this package */
export function resolveLocalOptions(
  options: LocalOptions = {},
  environment: NodeJS.ProcessEnv,
  defaultModelProcess: string,
): ResolvedLocalOptions {
  checkKeys('local.', options, [...localOptionNames])
  const defaults = readVariables(options, environment)
  const {
    threads,
    contextSize = defaults.contextSize,
    maxContextSize,
    parallel = defaults.parallel ?? 4,
    maxLoadedModels = defaults.maxLoadedModels ?? 3,
    maxCalls,
    maxPromptCharacters = 2 ** 26,
    gpuLayers = 'auto',
    promptCache,
    keepAlive,
    reloadCooldown = '5s',
    modelProcessPath = defaultModelProcess,
    environment: variables = [],
    runtimeDir = resolveRuntimeDir(environment),
  } = options
  return {
    ...resolveAttention(options, defaults),
    threads: checkInteger('local.threads', threads, 1, availableParallelism()),
    contextSize: checkInteger('local.contextSize', contextSize, 16, maxContext),
    maxContextSize: checkInteger('local.maxContextSize', maxContextSize, 16, maxContext),
    parallel: checkInteger('local.parallel', parallel, 1, maxParallel),
    maxLoadedModels: checkInteger('local.maxLoadedModels', maxLoadedModels, 1, maxModels),
    maxCalls: checkInteger('local.maxCalls', maxCalls, 1, 1e6),
    maxPromptCharacters: checkInteger('local.maxPromptCharacters', maxPromptCharacters, 2 ** 20, 2 ** 36),
    gpuLayers: checkGpuLayers('local.gpuLayers', gpuLayers),
    promptCache:
      promptCache === undefined ? undefined : parseOption('local.promptCache', () => toBytes(promptCache)),
    keepAlive: resolveKeepAlive(keepAlive, trimVariable(environment.OLLAMA_KEEP_ALIVE)),
    reloadCooldown: parseOption('local.reloadCooldown', () => toReloadCooldown(reloadCooldown)),
    modelProcessPath,
    environment: checkVariables(variables),
    runtimeDir,
  }
}

type VariableName = 'contextSize' | 'parallel' | 'maxLoadedModels' | 'flashAttention' | 'kvCacheType'

/** Reads Ollama's environment variables. If an option is set, its variable is neither read nor checked. */
function readVariables(
  options: LocalOptions,
  environment: NodeJS.ProcessEnv,
): Partial<Pick<LocalOptions, VariableName>> {
  const read = <Value>(option: VariableName, name: string, parse: (text: string, name: string) => Value) => {
    const text = options[option] === undefined ? trimVariable(environment[name]) : undefined
    return text === undefined ? undefined : parse(text, `$${name}`)
  }
  const integer = (min: number, max: number) => (text: string, name: string) =>
    // In Ollama, 0 means the default.
    text === '0' ? undefined : checkInteger(name, Number(text), min, max)
  return {
    contextSize: read('contextSize', 'OLLAMA_CONTEXT_LENGTH', integer(16, maxContext)),
    parallel: read('parallel', 'OLLAMA_NUM_PARALLEL', integer(1, maxParallel)),
    maxLoadedModels: read('maxLoadedModels', 'OLLAMA_MAX_LOADED_MODELS', integer(1, maxModels)),
    flashAttention: read('flashAttention', 'OLLAMA_FLASH_ATTENTION', (text, name) =>
      parseBoolean(name, text),
    ),
    kvCacheType: read('kvCacheType', 'OLLAMA_KV_CACHE_TYPE', (text, name) =>
      checkCacheType(name, text.toLowerCase()),
    ),
  }
}

function resolveAttention(
  options: LocalOptions,
  defaults: Pick<LocalOptions, 'flashAttention' | 'kvCacheType'>,
): Pick<ResolvedLocalOptions, 'flashAttention' | 'kvCacheType'> {
  const { flashAttention = defaults.flashAttention, kvCacheType = defaults.kvCacheType ?? 'f16' } = options
  if (flashAttention !== undefined && typeof flashAttention !== 'boolean')
    throw new TypeError(
      `Expected \`local.flashAttention\` to be a boolean, got ${describeValue(flashAttention)}`,
    )
  if (flashAttention === false && kvCacheType !== 'f16')
    throw new TypeError(
      `Expected flash attention for the KV cache type ${kvCacheType}: set \`local.kvCacheType\` to 'f16', or \`local.flashAttention\` to true`,
    )
  return { flashAttention, kvCacheType: checkCacheType('local.kvCacheType', kvCacheType) }
}

export function checkGpuLayers(option: string, value: number | 'auto' | 'max'): number | 'auto' | 'max' {
  if (value === 'auto' || value === 'max') return value
  if (typeof value === 'number') return checkInteger(option, value, 0, maxLayers)
  throw new TypeError(
    `Expected \`${option}\` to be 'auto', 'max' or a whole number, got ${describeValue(value)}`,
  )
}

function checkCacheType(option: string, value: string): KvCacheType {
  const known = kvCacheTypes.find((type) => type === value)
  if (known) return known
  throw new TypeError(
    `Expected \`${option}\` to be one of ${kvCacheTypes.join(', ')}, got ${describeValue(value)}`,
  )
}

function checkVariables(names: readonly string[]): readonly string[] {
  const isName = (name: unknown): boolean => typeof name === 'string' && /^[^=\0]+$/.test(name)
  if (!Array.isArray(names) || !names.every(isName))
    throw new TypeError(
      `Expected \`local.environment\` to be a list of names of environment variables, got ${JSON.stringify(names)}`,
    )
  // Windows ignores the case of names.
  const reserved = names.find((name) => /^(?:NODE_OPTIONS|UV_THREADPOOL_SIZE)$/i.test(name))
  if (reserved === undefined) return names
  throw new TypeError(`Expected \`local.environment\` without ${reserved}, which is not for model processes`)
}

/**
 * In `$OLLAMA_KEEP_ALIVE`, a number without a unit means seconds, and a negative duration means `'forever'`.
 */
function resolveKeepAlive(
  option: Duration | 'forever' | undefined,
  variable: string | undefined,
): number | 'forever' {
  if (option === 'forever') return option
  if (option !== undefined) return parseOption('local.keepAlive', () => toMs(option))
  if (!variable) return toMs('5m')
  const ms = /^[+-]?\d+$/.test(variable) ? Number(variable) * 1_000 : parseDuration(variable)
  if (ms === undefined)
    throw new TypeError(`Expected $OLLAMA_KEEP_ALIVE to be a duration such as 5m, got '${variable}'`)
  return ms < 0 ? 'forever' : ms
}

function toReloadCooldown(duration: Duration): number {
  const ms = toMs(duration)
  if (ms <= maxReloadCooldownMs) return ms
  throw new TypeError(`Expected at most '1h', got '${duration}'`)
}

const resolveRuntimeDir = ({ XDG_RUNTIME_DIR }: NodeJS.ProcessEnv): string | undefined =>
  XDG_RUNTIME_DIR ? join(XDG_RUNTIME_DIR, 'modelmount') : undefined
