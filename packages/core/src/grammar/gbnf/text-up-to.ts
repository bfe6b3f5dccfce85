/** Builds rules for text up to a mark, one rule per prefix of the mark (Knuth–Morris–Pratt automaton). */
import { groupBy } from '../../util/group-by.ts'
import { PrefixMatcher } from '../../util/prefix-matcher.ts'
import { complementRanges, type Range } from '../automata/ranges.ts'
import { characters, choice, type Expression, empty, repeat, sequence } from './expressions.ts'
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

/**
 * Builds any text that does not start with one of the words. After a word, the rest of that word follows. If a word is
 * a prefix of another one, either rest can follow.
 */
export function buildTextUnless(
  words: readonly (readonly [word: string, rest: Expression])[],
  grammar: Grammar,
): Expression {
  const { rule: anyText, setBody } = grammar.reserve('text')
  setBody(repeat(characters(...complementRanges([zero])), 0, Number.POSITIVE_INFINITY))
  const build = (rests: readonly (readonly [readonly string[], Expression])[]): Expression => {
    const ended = rests.filter(([letters]) => letters.length === 0).map(([, rest]) => rest)
    const groups = groupBy(
      rests.filter(([letters]) => letters.length > 0),
      ([[letter = '']]) => letter.codePointAt(0) as number,
    )
    const others = complementRanges([zero, ...[...groups.keys()].map(toRange)])
    const further = [...groups].map(([letter, group]) =>
      sequence(
        characters(toRange(letter)),
        grammar.define('start', build(group.map(([letters, rest]) => [letters.slice(1), rest]))),
      ),
    )
    // After the name of a tool, only its arguments can follow.
    const free = ended.length > 0 ? ended : [empty, sequence(characters(...others), anyText)]
    return choice(...free, ...further)
  }
  return grammar.define('start', build(words.map(([word, rest]) => [[...word], rest])))
}
