import type { LlamaModel, Token, TokenBias } from 'node-llama-cpp'
import type { SamplingParams } from '../decoding/sampling.ts'
import { biasesOf } from './addon.ts'
import type { LlamaLibrary } from './library.ts'

/** Adds up the biases of a token that occurs twice, as llama.cpp does. */
export function toTokenBias(
  { TokenBias }: LlamaLibrary,
  model: LlamaModel,
  pairs: SamplingParams['bias'],
): TokenBias {
  const bias = new TokenBias(model.tokenizer)
  // `TokenBias.set` silently ignores end tokens. Its internal map accepts all tokens.
  const biases = biasesOf(bias)
  const sums = new Map<number, number>()
  for (const [token, logit] of pairs) sums.set(token, (sums.get(token) ?? 0) + logit)
  for (const [token, logit] of sums) {
    if (biases) biases.set(token, logit)
    else bias.set(token as Token, { logit })
  }
  return bias
}
