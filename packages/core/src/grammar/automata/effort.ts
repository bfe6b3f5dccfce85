import { type Automaton, TooComplex } from './automaton.ts'

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
