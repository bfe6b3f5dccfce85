import type { Sampling } from '../../../request.ts'
import type { RunContext } from '../run-context.ts'

/** Replaces each text in the logit biases by its tokens, each with the bias of the text. */
export async function resolveTextBiases(
  sampling: Sampling,
  { model, budget }: Pick<RunContext, 'model' | 'budget'>,
): Promise<Sampling> {
  const { logitBias = [] } = sampling
  if (logitBias.every(([token]) => typeof token === 'number')) return sampling
  const resolved: (readonly [token: number, bias: number])[] = []
  for (const [token, bias] of logitBias) {
    const tokens =
      typeof token === 'number' ? [token] : await model.tokenize(token, budget, { isPlain: true })
    for (const one of tokens) resolved.push([one, bias])
  }
  return { ...sampling, logitBias: resolved }
}
