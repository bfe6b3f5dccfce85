import type { LlamaModel, Token, TokenBias } from 'node-llama-cpp'
import type { SamplingParams } from '../decoding/sampling.ts'
import { biasesOf } from './addon.ts'
import type { LlamaLibrary } from './library.ts'

export function toTokenBias(
  { TokenBias }: LlamaLibrary,
  model: LlamaModel,
  pairs: SamplingParams['bias'],
): TokenBias {
  const bias = new TokenBias(model.tokenizer)
  // `TokenBias.set` silently ignores end tokens. Its internal map accepts all tokens.
  const biases = biasesOf(bias)
  for (const [token, logit] of pairs) {
    if (biases) biases.set(token, logit)
    else bias.set(token as Token, { logit })
  }
  return bias
}
