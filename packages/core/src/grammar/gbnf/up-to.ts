/** Text up to a mark, as rules: one for each beginning of the mark that may have been written (Knuth, Morris and Pratt). */

import { others, type Range } from '../automata/ranges.ts'
import { characters, choice, type Expression, nothing, sequence } from './expressions.ts'
import type { Grammar } from './grammar.ts'

/** llama.cpp takes it for the end of a token. */
const zero: Range = [0, 0]

/**
 * @param behind what follows the mark; it may go on with such text again
 * @param mayEnd whether the text may also end without a mark
 */
export function textUpTo(
  grammar: Grammar,
  mark: string,
  behind: (again: Expression) => Expression,
  mayEnd: boolean,
): Expression {
  const letters = [...mark].map((letter) => letter.codePointAt(0) as number)
  const states = letters.map(() => grammar.reserve('text'))
  const start = states[0]?.rule as Expression
  const ends = behind(start)
  for (const [written, { become }] of states.entries()) {
    const ways = new Map<number, number[]>()
    for (const letter of new Set(letters)) {
      const reached = longestBeginning(letters, [...letters.slice(0, written), letter])
      if (reached > 0) ways.set(reached, [...(ways.get(reached) ?? []), letter])
    }
    const onward = [...ways].map(([reached, through]) =>
      sequence(characters(...through.map(one)), states[reached]?.rule ?? ends),
    )
    const elsewhere = others([zero, ...[...ways.values()].flat().map(one)])
    become(choice(...(mayEnd ? [nothing] : []), sequence(characters(...elsewhere), start), ...onward))
  }
  return start
}

const one = (letter: number): Range => [letter, letter]

/** How much of the beginning of `letters` stands at the end of `seen`. */
function longestBeginning(letters: readonly number[], seen: readonly number[]): number {
  let length = Math.min(letters.length, seen.length)
  while (!seen.slice(seen.length - length).every((letter, index) => letter === letters[index])) length--
  return length
}
