/** Nondeterministic automata (Thompson's construction), and the deterministic ones made of them. */
import { type Automaton, explore, TooComplex } from './automaton.ts'
import type { Effort } from './effort.ts'
import { lastCharacter, type Range } from './ranges.ts'

const maxNodes = 8_000

interface Edge {
  readonly low: number
  readonly high: number
  readonly to: number
}
/** A way without a character; some can be gone only at one place in the text. */
interface Skip {
  readonly to: number
  readonly only: Place | undefined
}
type Place = 'start' | 'end'

export class Nfa {
  readonly #edges: Edge[][] = []
  readonly #skips: Skip[][] = []
  readonly #effort: Effort

  constructor(effort: Effort) {
    this.#effort = effort
  }

  /** Throws `TooComplex` where there are too many. */
  node(): number {
    if (this.#edges.length >= maxNodes) throw new TooComplex('its repetitions make it too large')
    this.#skips.push([])
    return this.#edges.push([]) - 1
  }

  edge(from: number, [low, high]: Range, to: number): void {
    this.#edges[from]?.push({ low, high, to })
  }

  skip(from: number, to: number, only?: Place): void {
    this.#skips[from]?.push({ to, only })
  }

  /** The texts with a way from `first` to `last`, from which whatever follows is taken. Throws `TooComplex`. */
  automaton(first: number, last: number): Automaton {
    // One state for all that follows.
    const settle = (nodes: readonly number[]) => (nodes.includes(last) ? [last] : nodes)
    return explore(settle(this.#closure([first], 'start')), String, (nodes) => ({
      accepting: this.#closure(nodes, 'end').includes(last),
      edges: this.#moves(nodes).map(([low, high, next]) => [low, high, settle(next)]),
    }))
  }

  /** Where each stretch of characters leads that no edge begins or ends in. */
  #moves(nodes: readonly number[]): [low: number, high: number, next: readonly number[]][] {
    const edges = nodes.flatMap((node) => this.#edges[node] ?? [])
    const cuts = new Set([0, lastCharacter + 1])
    for (const { low, high } of edges) cuts.add(low).add(high + 1)
    const starts = [...cuts].sort((a, b) => a - b)
    return starts.slice(0, -1).flatMap((low, at) => {
      this.#effort.spend(edges.length)
      const next: number[] = []
      for (const edge of edges) if (edge.low <= low && low <= edge.high) next.push(edge.to)
      return next.length > 0 ? [[low, (starts[at + 1] as number) - 1, this.#closure(next)]] : []
    })
  }

  /** All nodes that are reached without a character. */
  #closure(nodes: readonly number[], place?: Place): readonly number[] {
    const reached = new Set(nodes)
    // It grows meanwhile.
    for (const node of reached)
      for (const { to, only } of this.#skips[node] ?? [])
        if (only === undefined || only === place) reached.add(to)
    this.#effort.spend(reached.size)
    return [...reached].sort((a, b) => a - b)
  }
}
