/** Nondeterministic automata (Thompson's construction), and the deterministic ones made of them. */
import { type Automaton, type DfaEdge, explore, TooComplexError } from './automaton.ts'
import { lastCharacter, type Range } from './ranges.ts'
import type { WorkBudget } from './work-budget.ts'

const maxNodes = 8_000

/** A way without a character; some can be gone only at one place in the text. */
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

  /** Throws `TooComplex` where there are too many. */
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

  /** The texts with a way from `first` to `last`, from which whatever follows is taken. Throws `TooComplex`. */
  toAutomaton(first: number, last: number): Automaton {
    // One state for all that follows.
    const settle = (nodes: readonly number[]) => (nodes.includes(last) ? [last] : nodes)
    return explore(settle(this.#closure([first], 'start')), String, (nodes) => ({
      isAccepting: this.#closure(nodes, 'end').includes(last),
      edges: this.#moves(nodes).map(({ low, high, next }) => ({ low, high, next: settle(next) })),
    }))
  }

  /** Where each stretch of characters leads that no edge begins or ends in. */
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

  /** All nodes that are reached without a character. */
  #closure(nodes: readonly number[], position?: TextAnchor): readonly number[] {
    const reached = new Set(nodes)
    // It grows meanwhile.
    for (const node of reached)
      for (const { to, anchor } of this.#epsilonEdges[node] ?? [])
        if (anchor === undefined || anchor === position) reached.add(to)
    this.#budget.spend(reached.size)
    return [...reached].sort((a, b) => a - b)
  }
}
