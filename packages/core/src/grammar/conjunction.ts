/** Schemas that hold at the same place, and the effort that may go into finding out what they take together. */
import { type Automaton, TooComplex } from './automaton.ts'
import { type Node, saysSomething } from './keywords.ts'

/** Of none, anything holds. */
export type Conjunction = readonly Node[]

export const never: Conjunction = [{ schema: false, at: 'never' }]

/** Each schema once and in one order, without those that say nothing. */
export function both(a: Conjunction, b: Conjunction): Conjunction {
  const nodes = new Map([...a, ...b].filter(saysSomething).map((node) => [node.at, node]))
  if ([...nodes.values()].some(({ schema }) => schema === false)) return never
  return [...nodes].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, node]) => node)
}

export const keyOf = (conjunction: Conjunction): string => conjunction.map(({ at }) => at).join(' ')

/** What goes into one schema: some hundred milliseconds in all, and no automaton is made twice. */
export class Effort {
  #left = 6_000_000
  readonly #automata = new Map<string, Automaton>()

  /** Throws `TooComplex` when there is none left. */
  spend(steps: number): void {
    this.#left -= steps
    if (this.#left < 0) throw new TooComplex('it combines too many things')
  }

  automaton(key: string, make: () => Automaton): Automaton {
    const made = this.#automata.get(key) ?? make()
    this.#automata.set(key, made)
    return made
  }
}
