/** Translates sampling options into the configuration of node-llama-cpp's samplers. */
import type { SequenceEvaluateOptions, Token, TokenBias } from 'node-llama-cpp'
import type { DryPenalty, ExcludeTop, Sampling } from '../../../request.ts'
import { limits } from '../../../request-limits.ts'
import { DryPenalties } from './dry-penalties.ts'

/** Sampling options with defaults applied. */
export interface SamplingParams {
  readonly temperature: number
  /** 0 keeps all tokens. */
  readonly topK: number
  readonly topP: number
  readonly minP: number
  /** Unsigned, 32 bits. */
  readonly seed: number
  readonly bias: readonly (readonly [token: number, bias: number])[]
  readonly penalty?: {
    readonly repeat: number
    readonly presence: number
    readonly frequency: number
    /** Number of last tokens to penalise. */
    readonly window: number
  }
  readonly dry?: Required<DryPenalty>
  readonly xtc?: ExcludeTop
  /** Tokens that are banned while the output is shorter than `until`. */
  readonly ban?: { readonly tokens: readonly number[]; readonly until: number }
  /** Whether the grammar describes JSON, with reasoning and tool calls around it. */
  readonly isJson?: boolean
  /** Number of most likely tokens to report with each sampled token. */
  readonly logprobs?: number
}

interface SamplingVocabulary {
  readonly vocabularySize: number
  readonly contextSize: number
  getEogTokens(): readonly number[]
}

export function toSamplingParams(
  sampling: Sampling,
  { vocabularySize, contextSize, getEogTokens }: SamplingVocabulary,
): SamplingParams {
  // Defaults of llama.cpp.
  const { temperature = 0.8, topK = 40, topP = 0.95, minP = 0.05, logitBias = [] } = sampling
  const {
    repeatPenalty: repeat = 1,
    presencePenalty: presence = 0,
    frequencyPenalty: frequency = 0,
  } = sampling
  const { repeatLastN = 64, seed, dry, xtc, ignoreEos = false, minTokens = 0 } = sampling
  // The window is at most the context, since node-llama-cpp allocates memory for the whole window.
  const windowOf = (lastN: number): number => (lastN === -1 ? contextSize : Math.min(lastN, contextSize))
  const window = windowOf(repeatLastN)
  const dryWindow = Math.min(windowOf(dry?.lastN ?? -1), limits.dry.lastN)
  const hasPenalty = window > 0 && (repeat !== 1 || presence !== 0 || frequency !== 0)
  const until = ignoreEos ? Number.POSITIVE_INFINITY : minTokens
  return {
    temperature,
    topK,
    topP,
    minP,
    seed: toSeed(seed),
    // Texts are replaced by their tokens before.
    bias: logitBias.flatMap(([token, bias]) =>
      typeof token === 'number' && token >= 0 && token < vocabularySize ? [[token, bias] as const] : [],
    ),
    ...(hasPenalty && { penalty: { repeat, presence, frequency, window } }),
    ...(dry && dry.strength > 0 && { dry: { ...dryDefaults, ...dry, lastN: dryWindow } }),
    ...(xtc && xtc.probability > 0 && temperature > 0 && { xtc }),
    ...(until > 0 && { ban: { tokens: getEogTokens(), until } }),
  }
}

/** Defaults of llama.cpp. */
const dryDefaults = { base: 1.75, allowedLength: 2, breakers: ['\n', ':', '"', '*'] }

/**
 * Returns a random seed if none is given. node-llama-cpp would use the current second, and simultaneous calls
 * would give the same output. The highest 32-bit number is reserved, since it means "random" in llama.cpp.
 */
const toSeed = (seed: Sampling['seed']): number =>
  typeof seed === 'number'
    ? Math.min(Number(BigInt.asUintN(32, BigInt(seed))), anySeed - 1)
    : Math.floor(Math.random() * anySeed)
const anySeed = 2 ** 32 - 1

/**
 * Returns the biases for the token that follows `length` output tokens. A ban is a finite bias, so that a
 * grammar that allows only banned tokens still works.
 */
function biasAt({ bias, ban }: SamplingParams, length: number): SamplingParams['bias'] {
  if (!ban || length >= ban.until) return bias
  const banned = new Set(ban.tokens)
  return [
    ...bias.filter(([token]) => !banned.has(token)),
    ...ban.tokens.map((token) => [token, -limits.bias] as const),
  ]
}

/** Parameter of `AddonSampler.applyConfig` in node-llama-cpp. */
export interface SamplerConfig {
  temperature: number
  seed: number
  topK?: number
  topP?: number
  minP?: number
  tokenBiasKeys?: Uint32Array
  tokenBiasValues?: Float32Array
  repeatPenalty?: number
  repeatPenaltyPresencePenalty?: number
  repeatPenaltyFrequencyPenalty?: number
  repeatPenaltyMaxTokens?: number
  repeatPenaltyTokens?: Uint32Array
  grammarEvaluationState?: object
  xtcProbability?: number
  xtcThreshold?: number
}

/**
 * Leaves out options that keep all tokens, since node-llama-cpp would sort the whole vocabulary for them. If
 * a sampler gets an equal configuration again, it keeps its state.
 * @param sampled output tokens so far
 * @param dryBias see `DryPenalties`
 */
export function toSamplerConfig(
  params: SamplingParams,
  prompt: readonly Token[],
  sampled: readonly Token[] = [],
  dryBias: SamplingParams['bias'] = [],
): SamplerConfig {
  const { temperature, topK, topP, minP, seed, penalty, xtc } = params
  return {
    temperature,
    seed,
    ...(topK > 0 && { topK }),
    ...(topP < 1 && { topP }),
    ...(minP > 0 && { minP }),
    ...toTokenBias(biasAt(params, sampled.length), dryBias),
    ...(penalty && {
      repeatPenalty: penalty.repeat,
      repeatPenaltyPresencePenalty: penalty.presence,
      repeatPenaltyFrequencyPenalty: penalty.frequency,
      repeatPenaltyMaxTokens: penalty.window,
      repeatPenaltyTokens: Uint32Array.from(takeLast(prompt, sampled, penalty.window)),
    }),
    ...(xtc && { xtcProbability: xtc.probability, xtcThreshold: xtc.threshold }),
  }
}

/**
 * Returns the configuration of a probe: a sampler that only reads logprobs. It applies the biases, but no
 * other option that changes the logprobs.
 */
export const toProbeConfig = ({ bias, seed }: SamplingParams, top: number): SamplerConfig => ({
  seed,
  // A greedy sampler only finds the maximum and changes no logits.
  ...(top > 0 ? { temperature: 1, topK: top } : { temperature: 0 }),
  ...toTokenBias(bias),
})

/** A loop, since the lists of a step may have 300,000 biases. A token in both lists gets the sum. */
function toTokenBias(
  ...lists: readonly SamplingParams['bias'][]
): Pick<SamplerConfig, 'tokenBiasKeys' | 'tokenBiasValues'> {
  const count = lists.reduce((sum, { length }) => sum + length, 0)
  if (count === 0) return {}
  const tokenBiasKeys = new Uint32Array(count)
  const tokenBiasValues = new Float32Array(count)
  let at = 0
  for (const list of lists)
    for (const [token, value] of list) {
      tokenBiasKeys[at] = token
      tokenBiasValues[at++] = value
    }
  return { tokenBiasKeys, tokenBiasValues }
}

const takeLast = (prompt: readonly Token[], sampled: readonly Token[], count: number): readonly Token[] =>
  [...prompt.slice(-count), ...sampled.slice(-count)].slice(-count)

/** What the public API needs of a model for biases. */
export interface BiasTools {
  /** Adds up the biases of a token that occurs twice. */
  tokenBias(pairs: SamplingParams['bias']): TokenBias
  textOf(tokens: readonly Token[]): string
}

/**
 * Like `toSamplerConfig`, for the public API of node-llama-cpp.
 * @param sampled output tokens so far; the array grows during decoding
 */
export function toEvaluateOptions(
  params: SamplingParams,
  tools: BiasTools,
  prompt: readonly Token[],
  sampled: readonly Token[],
): SequenceEvaluateOptions {
  const { temperature, topK, topP, minP, seed, bias, penalty, dry, xtc, ban } = params
  const penalties = dry && new DryPenalties(dry, tools.textOf)
  let accepted = 0
  const currentBias = (): TokenBias => {
    for (const token of sampled.slice(accepted)) penalties?.accept(token)
    accepted = sampled.length
    return tools.tokenBias([...biasAt(params, sampled.length), ...(penalties?.list() ?? [])])
  }
  return {
    ...{ temperature, topK, topP, minP, seed },
    ...(bias.length > 0 && { tokenBias: tools.tokenBias(bias) }),
    ...((ban || dry) && { tokenBias: currentBias }),
    ...(penalty && {
      repeatPenalty: {
        penalty: penalty.repeat,
        presencePenalty: penalty.presence,
        frequencyPenalty: penalty.frequency,
        maxPunishTokens: penalty.window,
        punishTokens: () => [...takeLast(prompt, sampled, penalty.window)],
      },
    }),
    ...(xtc && { xtc }),
  }
}
