/** Text up to a mark, as rules: one for each beginning of the mark that may have been written (Knuth, Morris and Pratt). */

import { groupBy } from '../../util/group-by.ts'
import { PrefixMatcher } from '../../util/prefix-matcher.ts'
import { complementRanges, type Range } from '../automata/ranges.ts'
import { characters, choice, type Expression, empty, sequence } from './expressions.ts'
import type { Grammar } from './grammar.ts'

/** llama.cpp takes it for the end of a token. */
const zero: Range = [0, 0]

/**
 * @param buildRest what follows the mark; it may go on with such text again
 * @param canEnd whether the text may also end without a mark
 */
export function buildTextUpTo(
  grammar: Grammar,
  mark: string,
  buildRest: (restart: Expression) => Expression,
  canEnd: boolean,
): Expression {
  const letters = [...mark].map((letter) => letter.codePointAt(0) as number)
  const matcher = new PrefixMatcher(letters)
  const states = letters.map(() => grammar.reserve('text'))
  const start = states[0]?.rule as Expression
  const afterMark = buildRest(start)
  for (const [matched, { setBody }] of states.entries()) {
    const advancing = [...new Set(letters)].filter((letter) => matcher.advance(matched, letter) > 0)
    const advances = [...groupBy(advancing, (letter) => matcher.advance(matched, letter))].map(
      ([reached, through]) =>
        sequence(characters(...through.map(toRange)), states[reached]?.rule ?? afterMark),
    )
    const elsewhere = complementRanges([zero, ...advancing.map(toRange)])
    setBody(choice(...(canEnd ? [empty] : []), sequence(characters(...elsewhere), start), ...advances))
  }
  return start
}

const toRange = (letter: number): Range => [letter, letter]
