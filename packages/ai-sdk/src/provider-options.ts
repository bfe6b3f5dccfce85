/** Options under `providerOptions.modelmount`, of calls, messages, parts and tools. */
import { InvalidArgumentError, type SharedV3ProviderOptions } from '@ai-sdk/provider'
import type {
  CacheLifetime,
  EmbedRequest,
  GenerateRequest,
  LoadOptions,
  Sampling,
} from '@modelmount/core/engine'

/** The end user of a call, and its priority. */
export interface CallerOptions {
  /** Id of the end user behind the caller, for the limits `perEndUser` of the caller. @default none */
  readonly endUser?: string | undefined
  /** Whether this call pauses while the model has other calls. @default false */
  readonly background?: boolean | undefined
}

/** Options of `generateText`, `streamText` and the like, beside the settings of the SDK. */
export interface LanguageModelOptions
  extends CallerOptions,
    Pick<GenerateRequest, 'reasoning' | 'overflow' | 'logprobs' | 'load'>,
    Omit<Sampling, 'temperature' | 'topP' | 'topK' | 'seed' | 'presencePenalty' | 'frequencyPenalty'> {
  /**
   * GBNF grammar of llama.cpp that the text must match. Cannot be combined with a JSON response format.
   *
   * @default none
   */
  readonly grammar?: string
  /** `false` allows at most one tool call per step. @default true */
  readonly parallelToolCalls?: boolean
  /** Variables for the model's chat template. @default none */
  readonly templateOptions?: Readonly<Record<string, unknown>>
}

/** Options of `embed` and `embedMany`. */
export interface EmbeddingOptions extends CallerOptions, Pick<EmbedRequest, 'dimensions' | 'overflow'> {
  /** How the model is loaded: context size and keep-alive. @default the settings of the app */
  readonly load?: LoadOptions
}

/** Options of `rerank`. */
export interface RerankingOptions extends CallerOptions, Pick<EmbedRequest, 'overflow'> {
  /** How the model is loaded: context size and keep-alive. @default the settings of the app */
  readonly load?: LoadOptions
}

/** Options of a message, of a part of a message, or of a tool. */
export interface CacheOptions {
  /** Sets a cache breakpoint after the message, part or tool. @default no breakpoint */
  readonly cache?: CacheLifetime
}

type Key<Options> = Extract<keyof Options, string>

const callerKeys: readonly Key<CallerOptions>[] = ['endUser', 'background']
export const languageModelKeys: readonly Key<LanguageModelOptions>[] = [
  ...callerKeys,
  ...(['reasoning', 'overflow', 'logprobs', 'load', 'grammar', 'parallelToolCalls'] as const),
  ...(['templateOptions', 'minP', 'repeatPenalty', 'repeatLastN', 'logitBias', 'dry', 'xtc'] as const),
  ...(['ignoreEos', 'minTokens'] as const),
]
export const embeddingKeys: readonly Key<EmbeddingOptions>[] = [
  ...callerKeys,
  'dimensions',
  'overflow',
  'load',
]
export const rerankingKeys: readonly Key<RerankingOptions>[] = [...callerKeys, 'overflow', 'load']
const cacheKeys: readonly Key<CacheOptions>[] = ['cache']

/** Values of the options that the engine does not check, or without a helpful error. */
const expectations: Readonly<Record<string, readonly [isValid: (value: unknown) => boolean, text: string]>> =
  {
    endUser: [(value) => typeof value === 'string', 'a string'],
    background: [(value) => typeof value === 'boolean', 'a boolean'],
    parallelToolCalls: [(value) => typeof value === 'boolean', 'a boolean'],
    reasoning: [(value) => typeof value === 'boolean' || value === 'auto', "true, false or 'auto'"],
    cache: [(value) => value === '5m' || value === '1h', "'5m' or '1h'"],
  }

/** Reads the options of a call. Throws an `InvalidArgumentError` for unknown options and wrong values. */
export function readOptions<Options extends object>(
  providerOptions: SharedV3ProviderOptions | undefined,
  keys: readonly Key<Options>[],
): Partial<Options> {
  const given = Object.entries(providerOptions?.modelmount ?? {}).filter(([, value]) => value !== undefined)
  for (const [key, value] of given) {
    if (!(keys as readonly string[]).includes(key))
      throw invalidOption(key, `unknown option. The options here are ${keys.join(', ')}.`)
    const [isValid, text] = expectations[key] ?? []
    if (isValid && !isValid(value))
      throw invalidOption(key, `expected ${text}, got ${JSON.stringify(value)}.`)
  }
  return Object.fromEntries(given) as Partial<Options>
}

/** Reads the cache breakpoint of a message, a part or a tool. */
export const readCache = (providerOptions: SharedV3ProviderOptions | undefined): CacheOptions =>
  readOptions<CacheOptions>(providerOptions, cacheKeys)

export const invalidOption = (key: string, problem: string): InvalidArgumentError => {
  const argument = `providerOptions.modelmount.${key}`
  return new InvalidArgumentError({ argument, message: `${argument}: ${problem}` })
}
