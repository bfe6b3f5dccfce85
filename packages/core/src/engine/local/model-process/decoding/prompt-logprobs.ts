import type { Token } from 'node-llama-cpp'
import type { PromptToken } from '../../../events.ts'
import type { Logprobs } from './decoder.ts'
import { type TokenTexts, tokenText, toSampledToken } from './token-text.ts'

/**
 * Returns a function that combines logprobs with their prompt tokens. The function is called once per piece
 * of logprobs, in order. The first logprob belongs to the second token of the prompt.
 * @param first index of the first token to report, which gets no logprob
 */
export function createPromptTokenMapper(
  prompt: readonly Token[],
  first: number,
  model: TokenTexts,
): (logprobs: readonly Logprobs[]) => readonly PromptToken[] {
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
