/** Every option of `createLlm`: its meaning, default and check. The environment is read here and nowhere else. */
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { AccessOptions } from './access.ts'
import type { Engine } from './engine/engine.ts'
import type { Logger } from './logger.ts'

export interface LlmOptions extends AccessOptions {
  /**
   * Where models are: folders whose `*.gguf` files are served by their stem, or single such
   * files. Of two with the same name the earlier wins, and all win over the built-in one.
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
   * Compute threads. More threads than cores over all processes makes everything many times slower.
   *
   * @default one less than the machine has cores, at least 1
   */
  threads?: number | undefined

  /**
   * Tokens that a prompt and its answer may have together. Memory for all of them is taken at load.
   *
   * @default `$OLLAMA_CONTEXT_LENGTH`, else 4096; never more than the model was trained for
   */
  contextSize?: number | undefined

  /**
   * The file that runs beside the app, for bundlers that lose it.
   *
   * @default `@modelmount/core/model-process`
   */
  modelProcess?: string | undefined
}

export interface ResolvedOptions {
  readonly models: readonly string[]
  readonly local: {
    readonly threads: number | undefined
    readonly contextSize: number | undefined
    readonly modelProcess: string | undefined
  }
  readonly engine: Engine | undefined
  readonly access: AccessOptions
  readonly logger: Logger | undefined
}

export function resolveOptions(
  options: LlmOptions,
  environment: NodeJS.ProcessEnv = process.env,
): ResolvedOptions {
  const models = options.models ?? (environment.OLLAMA_MODELS || join(homedir(), '.ollama', 'models'))
  // Empty or 0 is Ollama's way to say "as you like".
  const given = environment.OLLAMA_CONTEXT_LENGTH || '0'
  const fromEnvironment = given === '0' ? undefined : Number(given)
  const { threads, contextSize = count('$OLLAMA_CONTEXT_LENGTH', fromEnvironment, 16) } = options.local ?? {}
  return {
    models: (typeof models === 'string' ? [models] : models).map(expandHome),
    local: {
      threads: count('local.threads', threads, 1),
      contextSize: count('local.contextSize', contextSize, 16),
      modelProcess: options.local?.modelProcess,
    },
    engine: options.engine,
    access: { auth: options.auth, origins: options.origins },
    logger: options.logger,
  }
}

function count(option: string, value: unknown, least: number): number | undefined {
  if (value === undefined || (Number.isSafeInteger(value) && (value as number) >= least))
    return value as number | undefined
  throw new TypeError(
    `Expected \`${option}\` to be a whole number from ${least} up, got ${String(value)} (${typeof value})`,
  )
}

const expandHome = (path: string): string =>
  /^~(?=$|[\\/])/.test(path) ? join(homedir(), path.slice(1)) : path
