/** Text up to a mark, as rules: one for each beginning of the mark that may have been written (Knuth, Morris and Pratt). */
import { characters, choice, type Expression, type Grammar, nothing, type Range, sequence } from './gbnf.ts'

/** No null: llama.cpp takes it for the end of a token. */
const [first, last] = [0x01, 0x10ffff]

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
      sequence(
        characters(...through.map((letter): Range => [letter, letter])),
        states[reached]?.rule ?? ends,
      ),
    )
    const others = sequence(characters(...allBut([...ways.values()].flat())), start)
    become(choice(...(mayEnd ? [nothing] : []), others, ...onward))
  }
  return start
}

/** How much of the beginning of `letters` stands at the end of `seen`. */
function longestBeginning(letters: readonly number[], seen: readonly number[]): number {
  let length = Math.min(letters.length, seen.length)
  while (!seen.slice(seen.length - length).every((letter, index) => letter === letters[index])) length--
  return length
}

function allBut(letters: readonly number[]): readonly Range[] {
  const ranges: Range[] = []
  let from: number = first
  for (const letter of [...letters].sort((a, b) => a - b)) {
    if (letter > from) ranges.push([from, letter - 1])
    from = letter + 1
  }
  return [...ranges, [from, last]]
}
