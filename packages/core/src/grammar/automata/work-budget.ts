import { type Automaton, TooComplexError } from './automaton.ts'

/**
 * Step limit and automaton cache for compiling one schema. All steps together take at most a few hundred
 * milliseconds.
 */
export class WorkBudget {
  #remaining = 6_000_000
  readonly #automata = new Map<string, Automaton>()

  /** Throws `TooComplexError` if the budget is exhausted. */
  spend(steps: number): void {
    this.#remaining -= steps
    if (this.#remaining < 0) throw new TooComplexError('it takes too many steps to compile')
  }

  getAutomaton(key: string, build: () => Automaton): Automaton {
    const automaton = this.#automata.get(key) ?? build()
    this.#automata.set(key, automaton)
    return automaton
  }
}
