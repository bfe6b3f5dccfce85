/** How likely the tokens of a prompt were, as it is read. */
import type { Token } from 'node-llama-cpp'
import type { PromptToken } from '../../../events.ts'
import type { Odds } from './decoder.ts'
import { toDrawnToken, tokenText, type Vocabulary } from './token-text.ts'

/**
 * Takes the odds piece by piece, from the second token on.
 * @param first which token is told first: nothing is said of how likely that was
 */
export function promptOdds(
  prompt: readonly Token[],
  first: number,
  model: Vocabulary,
): (odds: readonly Odds[]) => readonly PromptToken[] {
  const toPromptToken = (index: number, odds?: Odds): PromptToken => {
    const token = prompt[index] as Token
    if (odds && index > first) return toDrawnToken(token, odds, model)
    return { id: token, ...tokenText(token, model, []), logprob: null, top: [] }
  }
  let next = 0
  return (odds) => {
    const opening = next === 0 ? [toPromptToken(next++)] : []
    const tokens = [...opening, ...odds.map((one) => toPromptToken(next++, one))]
    return tokens.slice(Math.max(0, first - (next - tokens.length)))
  }
}
