/** From neutral sampling options to numbers, and to what draws by them. */
import type { SequenceEvaluateOptions, Token, TokenBias } from 'node-llama-cpp'
import { type DryPenalty, type ExcludeTop, limits, type Sampling } from '../../../request.ts'

/** Every choice made, where the request left some open. */
export interface SamplingParams {
  readonly temperature: number
  /** 0 keeps all. */
  readonly topK: number
  readonly topP: number
  readonly minP: number
  /** Of 32 bits. */
  readonly seed: number
  readonly bias: readonly (readonly [token: number, bias: number])[]
  /** Absent where nothing is penalised. */
  readonly penalty?: {
    readonly repeat: number
    readonly presence: number
    readonly frequency: number
    /** How many tokens back. */
    readonly window: number
  }
  readonly dry?: Required<DryPenalty>
  readonly xtc?: ExcludeTop
  /** Tokens that are kept out while an answer is shorter than that. */
  readonly ban?: { readonly tokens: readonly number[]; readonly until: number }
  /** What the answer is held to is JSON, with thoughts and calls around it. */
  readonly isJson?: boolean
  /** Of how many of the likeliest tokens the odds are told, beside those of the drawn one. */
  readonly logprobs?: number
}

interface SamplingVocabulary {
  readonly vocabularySize: number
  readonly contextSize: number
  /** The tokens that end an answer. */
  getEogTokens(): readonly number[]
}

export function toSamplingParams(
  sampling: Sampling,
  { vocabularySize, contextSize, getEogTokens }: SamplingVocabulary,
): SamplingParams {
  // Where nobody says: llama.cpp's defaults.
  const { temperature = 0.8, topK = 40, topP = 0.95, minP = 0.05, logitBias = [] } = sampling
  const {
    repeatPenalty: repeat = 1,
    presencePenalty: presence = 0,
    frequencyPenalty: frequency = 0,
  } = sampling
  const { repeatLastN = 64, seed, dry, xtc, ignoreEos = false, minTokens = 0 } = sampling
  // The library takes memory for all of it.
  const windowOf = (lastN: number): number => (lastN === -1 ? contextSize : Math.min(lastN, contextSize))
  const window = windowOf(repeatLastN)
  const hasPenalty = window > 0 && (repeat !== 1 || presence !== 0 || frequency !== 0)
  const until = ignoreEos ? Number.POSITIVE_INFINITY : minTokens
  return {
    temperature,
    topK,
    topP,
    minP,
    seed: toSeed(seed),
    bias: logitBias.filter(([token]) => token >= 0 && token < vocabularySize),
    ...(hasPenalty && { penalty: { repeat, presence, frequency, window } }),
    ...(dry && dry.strength > 0 && { dry: { ...dryDefaults, ...dry, lastN: windowOf(dry.lastN ?? -1) } }),
    ...(xtc && xtc.probability > 0 && temperature > 0 && { xtc }),
    ...(until > 0 && { ban: { tokens: getEogTokens(), until } }),
  }
}

/** llama.cpp's. */
const dryDefaults = { base: 1.75, allowedLength: 2, breakers: ['\n', ':', '"', '*'] }

/**
 * Without one the library takes the second on the clock: calls at the same time would answer alike. The highest one
 * of 32 bits means to it that it takes any.
 */
const toSeed = (seed: Sampling['seed']): number =>
  typeof seed === 'number'
    ? Math.min(Number(BigInt.asUintN(32, BigInt(seed))), anySeed - 1)
    : Math.floor(Math.random() * anySeed)
const anySeed = 2 ** 32 - 1

/** Those of an answer that has so many tokens. A ban is finite: where a grammar allows nothing else, it gives way. */
function biasAt({ bias, ban }: SamplingParams, length: number): SamplingParams['bias'] {
  if (!ban || length >= ban.until) return bias
  const banned = new Set(ban.tokens)
  return [
    ...bias.filter(([token]) => !banned.has(token)),
    ...ban.tokens.map((token) => [token, -limits.bias] as const),
  ]
}

/** What the library's inside draws by. Shape: `AddonSampler.applyConfig`. */
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
  dryRepeatPenaltyStrength?: number
  dryRepeatPenaltyBase?: number
  dryRepeatPenaltyAllowedLength?: number
  dryRepeatPenaltyLastTokens?: number
  dryRepeatPenaltySequenceBreakers?: readonly string[]
  xtcProbability?: number
  xtcThreshold?: number
}

/**
 * What keeps everything is left out: to "keep" all, the library sorts the whole vocabulary. A sampler that is told
 * the same again keeps what it has drawn in mind.
 * @param sampled the tokens of the answer so far
 */
export function toSamplerConfig(
  params: SamplingParams,
  prompt: readonly Token[],
  sampled: readonly Token[] = [],
): SamplerConfig {
  const { temperature, topK, topP, minP, seed, penalty, dry, xtc } = params
  return {
    temperature,
    seed,
    ...(topK > 0 && { topK }),
    ...(topP < 1 && { topP }),
    ...(minP > 0 && { minP }),
    ...toTokenBias(biasAt(params, sampled.length)),
    ...(penalty && {
      repeatPenalty: penalty.repeat,
      repeatPenaltyPresencePenalty: penalty.presence,
      repeatPenaltyFrequencyPenalty: penalty.frequency,
      repeatPenaltyMaxTokens: penalty.window,
      repeatPenaltyTokens: Uint32Array.from(takeLast(prompt, sampled, penalty.window)),
    }),
    ...(dry && {
      dryRepeatPenaltyStrength: dry.strength,
      dryRepeatPenaltyBase: dry.base,
      dryRepeatPenaltyAllowedLength: dry.allowedLength,
      dryRepeatPenaltyLastTokens: dry.lastN,
      dryRepeatPenaltySequenceBreakers: dry.breakers,
    }),
    ...(xtc && { xtcProbability: xtc.probability, xtcThreshold: xtc.threshold }),
  }
}

/** For samplers that draw nothing, and are asked how likely tokens are: they see what the model says, and its biases. */
export const toProbeConfig = ({ bias, seed }: SamplingParams, top: number): SamplerConfig => ({
  seed,
  // The greedy one looks for the likeliest alone, and leaves all of them as they are.
  ...(top > 0 ? { temperature: 1, topK: top } : { temperature: 0 }),
  ...toTokenBias(bias),
})

const toTokenBias = (
  bias: SamplingParams['bias'],
): Pick<SamplerConfig, 'tokenBiasKeys' | 'tokenBiasValues'> =>
  bias.length === 0
    ? {}
    : {
        tokenBiasKeys: Uint32Array.from(bias, ([token]) => token),
        tokenBiasValues: Float32Array.from(bias, ([, value]) => value),
      }

const takeLast = (prompt: readonly Token[], sampled: readonly Token[], count: number): readonly Token[] =>
  [...prompt.slice(-count), ...sampled.slice(-count)].slice(-count)

/** The same for what the library makes public. @param sampled the tokens of the answer so far; grows while it is made */
export function toEvaluateOptions(
  params: SamplingParams,
  tokenBias: (pairs: SamplingParams['bias']) => TokenBias,
  prompt: readonly Token[],
  sampled: readonly Token[],
): SequenceEvaluateOptions {
  const { temperature, topK, topP, minP, seed, bias, penalty, dry, xtc, ban } = params
  return {
    ...{ temperature, topK, topP, minP, seed },
    ...(bias.length > 0 && { tokenBias: tokenBias(bias) }),
    ...(ban && { tokenBias: () => tokenBias(biasAt(params, sampled.length)) }),
    ...(penalty && {
      repeatPenalty: {
        penalty: penalty.repeat,
        presencePenalty: penalty.presence,
        frequencyPenalty: penalty.frequency,
        maxPunishTokens: penalty.window,
        punishTokens: () => [...takeLast(prompt, sampled, penalty.window)],
      },
    }),
    ...(dry && {
      dryRepeatPenalty: {
        strength: dry.strength,
        base: dry.base,
        allowedLength: dry.allowedLength,
        lastTokens: dry.lastN,
        sequenceBreakers: [...dry.breakers],
      },
    }),
    ...(xtc && { xtc }),
  }
}
