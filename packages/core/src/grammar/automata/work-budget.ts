import { type Automaton, TooComplexError } from './automaton.ts'

/** What goes into one schema: some hundred milliseconds in all, and no automaton is made twice. */
export class WorkBudget {
  #remaining = 6_000_000
  readonly #automata = new Map<string, Automaton>()

  /** Throws `TooComplex` when there is none left. */
  spend(steps: number): void {
    this.#remaining -= steps
    if (this.#remaining < 0) throw new TooComplexError('it combines too many things')
  }

  getAutomaton(key: string, build: () => Automaton): Automaton {
    const automaton = this.#automata.get(key) ?? build()
    this.#automata.set(key, automaton)
    return automaton
  }
}
