/**
 * Deterministic finite automata over code points, for patterns, formats, number ranges and property names. A
 * text has one path through an automaton, so llama.cpp tracks a single parse of the resulting grammar.
 */
import { drain } from '../../util/drain.ts'
import { groupBy } from '../../util/group-by.ts'
import { complementRanges, lastCharacter, type Range } from './ranges.ts'

/** State 0 is the start. Every state can reach an accepting state, unless the automaton accepts nothing. */
export interface Automaton {
  readonly states: readonly DfaState[]
}
export interface DfaState {
  readonly isAccepting: boolean
  /** Sorted by `low`. The ranges are disjoint. */
  readonly edges: readonly DfaEdge[]
}
export interface DfaEdge<State = number> {
  readonly low: number
  readonly high: number
  readonly next: State
}

/**
 * Thrown if an automaton is too large or takes too many steps to build. The message is a clause that an error
 * message can contain.
 */
export class TooComplexError extends Error {}

const maxStates = 4_000

/** One state during construction, with the states that follow it. */
interface StateExpansion<S> {
  readonly isAccepting: boolean
  readonly edges: readonly DfaEdge<S>[]
}

/** Builds the automaton of all states reachable from `first`. Throws `TooComplexError`. */
export function explore<S>(
  first: S,
  keyOf: (state: S) => string,
  expand: (state: S) => StateExpansion<S>,
): Automaton {
  const numbers = new Map<string, number>()
  const found: S[] = []
  const assignNumber = (state: S): number => {
    const key = keyOf(state)
    const known = numbers.get(key)
    if (known !== undefined) return known
    if (found.length >= maxStates) throw new TooComplexError(`it needs more than ${maxStates} states`)
    numbers.set(key, found.length)
    return found.push(state) - 1
  }
  assignNumber(first)
  const states: DfaState[] = []
  for (let at = 0; at < found.length; at++) {
    const { isAccepting, edges } = expand(found[at] as S)
    const numbered = edges.map(({ low, high, next }) => ({ low, high, next: assignNumber(next) }))
    states.push({ isAccepting, edges: mergeEdges(numbered) })
  }
  return removeDeadStates(states)
}

/** Joins edges with adjacent ranges and the same target. */
function mergeEdges(edges: readonly DfaEdge[]): DfaEdge[] {
  const joined: DfaEdge[] = []
  for (const edge of [...edges].sort((a, b) => a.low - b.low)) {
    const last = joined.at(-1)
    if (last && last.next === edge.next && last.high + 1 === edge.low)
      joined[joined.length - 1] = { ...last, high: edge.high }
    else joined.push(edge)
  }
  return joined
}

/** Removes states that reach no accepting state. */
function removeDeadStates(states: readonly DfaState[]): Automaton {
  const sources = states.map((): number[] => [])
  states.forEach(({ edges }, at) => {
    for (const { next } of edges) sources[next]?.push(at)
  })
  const alive = new Set<number>()
  const pending = states.flatMap(({ isAccepting }, at) => (isAccepting ? [at] : []))
  for (const at of drain(pending)) {
    if (alive.has(at)) continue
    alive.add(at)
    pending.push(...(sources[at] ?? []))
  }
  if (!alive.has(0)) return noText
  const numbers = new Map([...alive].sort((a, b) => a - b).map((old, at) => [old, at]))
  const trimmed = [...numbers.keys()].map((old): DfaState => {
    const { isAccepting, edges } = states[old] as DfaState
    return {
      isAccepting,
      edges: edges.flatMap((edge) => {
        const next = numbers.get(edge.next)
        return next === undefined ? [] : [{ ...edge, next }]
      }),
    }
  })
  return isAnyText(trimmed) ? anyText : { states: trimmed }
}

const isAnyText = ([first, ...others]: readonly DfaState[]): boolean => {
  const [edge] = first?.edges ?? []
  return others.length === 0 && first?.isAccepting === true && edge?.low === 0 && edge.high === lastCharacter
}

export const noText: Automaton = { states: [{ isAccepting: false, edges: [] }] }

export const anyText: Automaton = {
  states: [{ isAccepting: true, edges: [{ low: 0, high: lastCharacter, next: 0 }] }],
}

export const isEmpty = ({ states }: Automaton): boolean =>
  !states[0]?.isAccepting && states[0]?.edges.length === 0

export function follow(
  states: readonly DfaState[],
  from: DfaState | undefined,
  code: number,
): DfaState | undefined {
  const edge = from?.edges.find(({ low, high }) => low <= code && code <= high)
  return edge && states[edge.next]
}

export function accepts({ states }: Automaton, text: string): boolean {
  let state = states[0]
  for (const character of text) state = follow(states, state, character.codePointAt(0) as number)
  return state?.isAccepting ?? false
}

export function intersect(a: Automaton, b: Automaton): Automaton {
  if (a === anyText || a === b) return b
  if (b === anyText) return a
  return explore<Range>([0, 0], String, ([inA, inB]) => {
    const [left, right] = [a.states[inA] as DfaState, b.states[inB] as DfaState]
    const edges: DfaEdge<Range>[] = []
    for (let i = 0, j = 0; i < left.edges.length && j < right.edges.length; ) {
      const [x, y] = [left.edges[i] as DfaEdge, right.edges[j] as DfaEdge]
      const [low, high] = [Math.max(x.low, y.low), Math.min(x.high, y.high)]
      if (low <= high) edges.push({ low, high, next: [x.next, y.next] })
      if (x.high <= y.high) i++
      if (y.high <= x.high) j++
    }
    return { isAccepting: left.isAccepting && right.isAccepting, edges }
  })
}

/** Merges equivalent states (Moore's algorithm). */
export function minimize({ states }: Automaton): Automaton {
  let classes: readonly number[] = states.map(({ isAccepting }) => (isAccepting ? 1 : 0))
  for (let count = 0; ; ) {
    const edgesOf = ({ edges }: DfaState): readonly DfaEdge[] =>
      mergeEdges(edges.map((edge) => ({ ...edge, next: classes[edge.next] as number })))
    const numbers = new Map<string, number>()
    const refined = states.map((state, at) => {
      const key = `${classes[at]} ${edgesOf(state).map(({ low, high, next }) => `${low}-${high}:${next}`)}`
      const number = numbers.get(key) ?? numbers.size
      numbers.set(key, number)
      return number
    })
    // Classes are numbered in the order of their first states, so that 0 stays the start.
    if (numbers.size === count)
      return {
        states: [...numbers.values()].map((number) => {
          const state = states[classes.indexOf(number)] as DfaState
          return { isAccepting: state.isAccepting, edges: edgesOf(state) }
        }),
      }
    classes = refined
    count = numbers.size
  }
}

export const complement = ({ states }: Automaton): Automaton =>
  explore<number>(0, String, (at) => {
    const { isAccepting = false, edges = [] } = states[at] ?? {}
    const gaps = complementRanges(edges.map(({ low, high }) => [low, high]))
    const rejected = gaps.map(([low, high]) => ({ low, high, next: -1 }))
    return { isAccepting: !isAccepting, edges: [...edges, ...rejected].sort((a, b) => a.low - b.low) }
  })

export const union = (a: Automaton, b: Automaton): Automaton =>
  complement(intersect(complement(a), complement(b)))

/** Builds an automaton that accepts exactly these texts. */
export const buildWordAutomaton = (texts: readonly string[]): Automaton =>
  explore<readonly [prefix: string, endings: readonly string[]]>(
    ['', texts],
    ([prefix]) => prefix,
    ([prefix, endings]) => ({
      isAccepting: endings.includes(''),
      edges: [...groupBy(endings, (ending) => ending.codePointAt(0))].flatMap(([code, group]) => {
        if (code === undefined) return []
        const letter = String.fromCodePoint(code)
        const rests = group.map((ending) => ending.slice(letter.length))
        return { low: code, high: code, next: [prefix + letter, rests] as const }
      }),
    }),
  )

/** Builds an automaton that accepts texts of `min` to `max` code points. */
export const buildLengthAutomaton = (min: number, max: number): Automaton =>
  explore<number>(0, String, (length) => {
    const next = Math.min(length + 1, max === Number.POSITIVE_INFINITY ? Math.max(min, 1) : max + 1)
    return {
      isAccepting: length >= min && length <= max,
      edges: length > max ? [] : [{ low: 0, high: lastCharacter, next }],
    }
  })
