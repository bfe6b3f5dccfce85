/** From neutral sampling options to the library's. */
import type { SequenceEvaluateOptions, Token } from 'node-llama-cpp'
import type { Sampling } from '../../request.ts'
import type { Binding } from './binding.ts'

/** @param drawn the tokens of the answer so far; grows while it is made */
export function toEvaluateOptions(
  model: Pick<Binding, 'bias' | 'vocabularySize' | 'contextSize'>,
  sampling: Sampling = {},
  prompt: readonly Token[],
  drawn: readonly Token[],
): SequenceEvaluateOptions {
  // Where nobody says: llama.cpp's defaults.
  const { temperature = 0.8, topK = 40, topP = 0.95, minP = 0.05, repeatPenalty = 1 } = sampling
  const { presencePenalty = 0, frequencyPenalty = 0, repeatLastN = 64, logitBias = [] } = sampling
  const window = repeatLastN === -1 ? model.contextSize : repeatLastN
  const bias = logitBias.filter(([token]) => token >= 0 && token < model.vocabularySize)
  const penalised = window > 0 && (repeatPenalty !== 1 || presencePenalty !== 0 || frequencyPenalty !== 0)
  return {
    temperature,
    topK,
    topP,
    minP,
    // Without one the library takes the second on the clock: calls at the same time would answer alike.
    seed:
      sampling.seed === undefined
        ? Math.floor(Math.random() * 2 ** 32)
        : Number(BigInt.asUintN(32, BigInt(sampling.seed))),
    ...(bias.length > 0 && { tokenBias: model.bias(bias) }),
    ...(penalised && {
      repeatPenalty: {
        penalty: repeatPenalty,
        presencePenalty,
        frequencyPenalty,
        maxPunishTokens: window,
        punishTokens: () => [...prompt.slice(-window), ...drawn.slice(-window)].slice(-window),
      },
    }),
  }
}
