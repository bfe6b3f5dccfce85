/** From neutral sampling options to numbers, and to what draws by them. */
import type { SequenceEvaluateOptions, Token } from 'node-llama-cpp'
import type { Sampling } from '../../request.ts'

/** Every choice made, where the request left some open. */
export interface Draw {
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
}

interface Vocabulary {
  readonly vocabularySize: number
  readonly contextSize: number
}

export function toDraw(sampling: Sampling, { vocabularySize, contextSize }: Vocabulary): Draw {
  // Where nobody says: llama.cpp's defaults.
  const { temperature = 0.8, topK = 40, topP = 0.95, minP = 0.05, logitBias = [] } = sampling
  const {
    repeatPenalty: repeat = 1,
    presencePenalty: presence = 0,
    frequencyPenalty: frequency = 0,
  } = sampling
  const { repeatLastN = 64, seed } = sampling
  // The library takes memory for all of it.
  const window = repeatLastN === -1 ? contextSize : Math.min(repeatLastN, contextSize)
  const penalised = window > 0 && (repeat !== 1 || presence !== 0 || frequency !== 0)
  return {
    temperature,
    topK,
    topP,
    minP,
    // Without one the library takes the second on the clock: calls at the same time would answer alike.
    seed: seed === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(BigInt.asUintN(32, BigInt(seed))),
    bias: logitBias.filter(([token]) => token >= 0 && token < vocabularySize),
    ...(penalised && { penalty: { repeat, presence, frequency, window } }),
  }
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
}

/** What keeps everything is left out: to "keep" all, the library sorts the whole vocabulary. */
export const toSamplerConfig = (
  { temperature, topK, topP, minP, seed, bias, penalty }: Draw,
  prompt: readonly Token[],
): SamplerConfig => ({
  temperature,
  seed,
  ...(topK > 0 && { topK }),
  ...(topP < 1 && { topP }),
  ...(minP > 0 && { minP }),
  ...(bias.length > 0 && {
    tokenBiasKeys: Uint32Array.from(bias, ([token]) => token),
    tokenBiasValues: Float32Array.from(bias, ([, value]) => value),
  }),
  ...(penalty && {
    repeatPenalty: penalty.repeat,
    repeatPenaltyPresencePenalty: penalty.presence,
    repeatPenaltyFrequencyPenalty: penalty.frequency,
    repeatPenaltyMaxTokens: penalty.window,
    repeatPenaltyTokens: Uint32Array.from(prompt.slice(-penalty.window)),
  }),
})

/** The same for what the library makes public. @param drawn the tokens of the answer so far; grows while it is made */
export function toEvaluateOptions(
  { temperature, topK, topP, minP, seed, bias, penalty }: Draw,
  tokenBias: (pairs: Draw['bias']) => NonNullable<SequenceEvaluateOptions['tokenBias']>,
  prompt: readonly Token[],
  drawn: readonly Token[],
): SequenceEvaluateOptions {
  return {
    ...{ temperature, topK, topP, minP, seed },
    ...(bias.length > 0 && { tokenBias: tokenBias(bias) }),
    ...(penalty && {
      repeatPenalty: {
        penalty: penalty.repeat,
        presencePenalty: penalty.presence,
        frequencyPenalty: penalty.frequency,
        maxPunishTokens: penalty.window,
        punishTokens: () =>
          [...prompt.slice(-penalty.window), ...drawn.slice(-penalty.window)].slice(-penalty.window),
      },
    }),
  }
}
