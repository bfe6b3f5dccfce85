/** Builds rules for text up to a mark, one rule per prefix of the mark (Knuth–Morris–Pratt automaton). */
import { groupBy } from '../../util/group-by.ts'
import { PrefixMatcher } from '../../util/prefix-matcher.ts'
import { complementRanges, type Range } from '../automata/ranges.ts'
import { characters, choice, type Expression, empty, sequence } from './expressions.ts'
import type { Grammar } from './grammar.ts'

/** The null character. llama.cpp reads it as the end of a token. */
const zero: Range = [0, 0]

/**
 * @param buildRest builds the part after the mark. `restart` matches text up to the next mark.
 * @param canEnd whether the text can end without a mark
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
