/** How likely the tokens of a prompt were, as it is read. */
import type { Token } from 'node-llama-cpp'
import type { PromptToken } from '../../../events.ts'
import type { Logprobs } from './decoder.ts'
import { type TokenTexts, tokenText, toSampledToken } from './token-text.ts'

/**
 * Takes the odds piece by piece, from the second token on.
 * @param first which token is told first: nothing is said of how likely that was
 */
export function createPromptTokenMapper(
  prompt: readonly Token[],
  first: number,
  model: TokenTexts,
): (odds: readonly Logprobs[]) => readonly PromptToken[] {
  const toPromptToken = (index: number, logprobs?: Logprobs): PromptToken => {
    const token = prompt[index] as Token
    if (logprobs && index > first) return toSampledToken(token, logprobs, model)
    return { id: token, ...tokenText(token, model, []), logprob: null, top: [] }
  }
  let next = 0
  return (logprobs) => {
    const opening = next === 0 ? [toPromptToken(next++)] : []
    const tokens = [...opening, ...logprobs.map((one) => toPromptToken(next++, one))]
    return tokens.slice(Math.max(0, first - (next - tokens.length)))
  }
}
