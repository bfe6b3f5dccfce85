/** How models are loaded on this machine. */
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { type ByteSize, type Duration, parseDuration, toBytes, toMs } from '../units.ts'
import { checkInteger, checkKeys, describeValue, parseBoolean, trimVariable } from './check.ts'

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
  modelProcessPath?: string | undefined

  /**
   * The folder where model processes and apps meet: apps of one user that name the same share loaded models. It has to
   * be private (0700); else, or where it cannot be made, this app shares with nobody.
   *
   * @default `modelmount` in `$XDG_RUNTIME_DIR`, else one in the folder for temporary files
   */
  runtimeDir?: string | undefined
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

export interface ResolvedLocalOptions {
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
  readonly modelProcessPath: string
  readonly runtimeDir: string | undefined
}

/** @param defaultModelProcess where it is that comes with us */
export function resolveLocalOptions(
  options: LocalOptions = {},
  environment: NodeJS.ProcessEnv,
  defaultModelProcess: string,
): ResolvedLocalOptions {
  checkKeys('local.', options, [
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
    'modelProcessPath',
    'runtimeDir',
  ])
  const variable = (name: string): string | undefined => trimVariable(environment[name])
  const readInteger = (name: string, min: number, max: number): number | undefined => {
    // Ollama's way to say "as you like".
    const given = variable(name) ?? '0'
    return given === '0' ? undefined : checkInteger(`$${name}`, Number(given), min, max)
  }
  const {
    threads,
    contextSize = readInteger('OLLAMA_CONTEXT_LENGTH', 16, maxContext),
    maxContextSize,
    parallel = readInteger('OLLAMA_NUM_PARALLEL', 1, maxParallel),
    maxLoadedModels = readInteger('OLLAMA_MAX_LOADED_MODELS', 1, maxModels) ?? 3,
    gpuLayers = 'auto',
    flashAttention = parseBoolean('$OLLAMA_FLASH_ATTENTION', variable('OLLAMA_FLASH_ATTENTION')),
    kvCacheType = checkCacheType(
      '$OLLAMA_KV_CACHE_TYPE',
      variable('OLLAMA_KV_CACHE_TYPE')?.toLowerCase() ?? 'f16',
    ),
    promptCache,
    keepAlive,
    modelProcessPath = defaultModelProcess,
    runtimeDir = resolveRuntimeDir(environment),
  } = options
  if (flashAttention !== undefined && typeof flashAttention !== 'boolean')
    throw new TypeError(
      `Expected \`local.flashAttention\` to be a boolean, got ${describeValue(flashAttention)}`,
    )
  if (flashAttention === false && kvCacheType !== 'f16')
    throw new TypeError(
      `Expected flash attention for the KV cache type ${kvCacheType}: set \`local.kvCacheType\` to 'f16', or \`local.flashAttention\` to true`,
    )
  return {
    threads: checkInteger('local.threads', threads, 1, availableParallelism()),
    contextSize: checkInteger('local.contextSize', contextSize, 16, maxContext),
    maxContextSize: checkInteger('local.maxContextSize', maxContextSize, 16, maxContext),
    parallel: checkInteger('local.parallel', parallel, 1, maxParallel),
    maxLoadedModels: checkInteger('local.maxLoadedModels', maxLoadedModels, 1, maxModels),
    gpuLayers: checkGpuLayers(gpuLayers),
    flashAttention,
    kvCacheType: checkCacheType('local.kvCacheType', kvCacheType),
    promptCache: promptCache === undefined ? undefined : toBytes(promptCache),
    keepAlive: resolveKeepAlive(keepAlive, variable('OLLAMA_KEEP_ALIVE')),
    modelProcessPath,
    runtimeDir,
  }
}

function checkGpuLayers(value: number | 'auto' | 'max'): number | 'auto' | 'max' {
  if (value === 'auto' || value === 'max') return value
  if (typeof value === 'number') return checkInteger('local.gpuLayers', value, 0, maxLayers)
  throw new TypeError(
    `Expected \`local.gpuLayers\` to be 'auto', 'max' or a whole number, got ${describeValue(value)}`,
  )
}

function checkCacheType(option: string, value: string): KvCacheType {
  const known = kvCacheTypes.find((type) => type === value)
  if (known) return known
  throw new TypeError(
    `Expected \`${option}\` to be one of ${kvCacheTypes.join(', ')}, got ${describeValue(value)}`,
  )
}

/** In Ollama's environment variable a bare number is seconds, and what is negative means for ever. */
function resolveKeepAlive(
  option: Duration | 'forever' | undefined,
  variable: string | undefined,
): number | 'forever' {
  if (option === 'forever') return option
  if (option !== undefined) return toMs(option)
  if (!variable) return toMs('5m')
  const ms = /^[+-]?\d+$/.test(variable) ? Number(variable) * 1_000 : parseDuration(variable)
  if (ms === undefined)
    throw new TypeError(`Expected $OLLAMA_KEEP_ALIVE to be a duration such as 5m, got '${variable}'`)
  return ms < 0 ? 'forever' : ms
}

const resolveRuntimeDir = ({ XDG_RUNTIME_DIR }: NodeJS.ProcessEnv): string | undefined =>
  XDG_RUNTIME_DIR ? join(XDG_RUNTIME_DIR, 'modelmount') : undefined
