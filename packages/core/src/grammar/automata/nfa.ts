/**
 * Nondeterministic finite automata (Thompson's construction), and their conversion to deterministic automata
 * (subset construction).
 */
import { type Automaton, type DfaEdge, explore, TooComplexError } from './automaton.ts'
import { lastCharacter, type Range } from './ranges.ts'
import type { WorkBudget } from './work-budget.ts'

const maxNodes = 8_000

/** An edge that consumes no character. `anchor` limits the edge to the start or the end of the text. */
interface EpsilonEdge {
  readonly to: number
  readonly anchor: TextAnchor | undefined
}
type TextAnchor = 'start' | 'end'

export class Nfa {
  readonly #edges: DfaEdge[][] = []
  readonly #epsilonEdges: EpsilonEdge[][] = []
  readonly #budget: WorkBudget

  constructor(budget: WorkBudget) {
    this.#budget = budget
  }

  /** Throws `TooComplexError` if the automaton already has `maxNodes` nodes. */
  addNode(): number {
    if (this.#edges.length >= maxNodes) throw new TooComplexError('its repetitions make it too large')
    this.#epsilonEdges.push([])
    return this.#edges.push([]) - 1
  }

  addEdge(from: number, [low, high]: Range, to: number): void {
    this.#edges[from]?.push({ low, high, next: to })
  }

  addEpsilonEdge(from: number, to: number, anchor?: TextAnchor): void {
    this.#epsilonEdges[from]?.push({ to, anchor })
  }

  /**
   * Builds an automaton that accepts texts with a path from `first` to `last`. After `last`, any text can
   * follow. Throws `TooComplexError`.
   */
  toAutomaton(first: number, last: number): Automaton {
    // A set of nodes that contains `last` accepts any continuation, so all such sets become one state.
    const settle = (nodes: readonly number[]) => (nodes.includes(last) ? [last] : nodes)
    return explore(settle(this.#closure([first], 'start')), String, (nodes) => ({
      isAccepting: this.#closure(nodes, 'end').includes(last),
      edges: this.#moves(nodes).map(({ low, high, next }) => ({ low, high, next: settle(next) })),
    }))
  }

  /** Lists the transitions from a set of nodes. Splits overlapping character ranges into disjoint ranges. */
  #moves(nodes: readonly number[]): DfaEdge<readonly number[]>[] {
    const edges = nodes.flatMap((node) => this.#edges[node] ?? [])
    const cuts = new Set([0, lastCharacter + 1])
    for (const { low, high } of edges) cuts.add(low).add(high + 1)
    const starts = [...cuts].sort((a, b) => a - b)
    return starts.slice(0, -1).flatMap((low, at) => {
      this.#budget.spend(edges.length)
      const next: number[] = []
      for (const edge of edges) if (edge.low <= low && low <= edge.high) next.push(edge.next)
      return next.length > 0 ? [{ low, high: (starts[at + 1] as number) - 1, next: this.#closure(next) }] : []
    })
  }

  /** Returns the epsilon closure of the nodes, in ascending order. */
  #closure(nodes: readonly number[], position?: TextAnchor): readonly number[] {
    const reached = new Set(nodes)
    // The set grows during the iteration.
    for (const node of reached)
      for (const { to, anchor } of this.#epsilonEdges[node] ?? [])
        if (anchor === undefined || anchor === position) reached.add(to)
    this.#budget.spend(reached.size)
    return [...reached].sort((a, b) => a - b)
  }
}
