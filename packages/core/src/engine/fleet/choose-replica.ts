/** Chooses the replica for a call. */
import { createHash } from 'node:crypto'
import type { HashedPrompt } from './prefix-blocks.ts'
import type { PrefixMatch } from './prefix-memory.ts'

/** How a fleet chooses the replica of a call: see `balance` of `FleetOptions`. */
export type Balance = (typeof balances)[number]

export const balances = ['prefix', 'least-tokens', 'round-robin'] as const

export interface Candidate {
  /** The same in all app processes. */
  readonly url: string
  /** Changes when the replica has lost its cache. */
  readonly cacheId: number
  /** Tokens that the replica has still to evaluate and to generate for running calls, as an estimate. */
  readonly outstandingTokens: number
  /** Share of its load that the replica may have now, above 0 and at most 1: less while it starts. */
  readonly weight: number
}

export interface RoutedPrompt extends HashedPrompt, PrefixMatch {
  /** Bound of the answer's tokens, as an estimate. */
  readonly outputTokens: number
}

export interface LoadBound {
  /** A replica gets at most this many times the mean of outstanding tokens. */
  readonly factor: number
  /** Below this many outstanding tokens, a replica gets more calls in any case. */
  readonly floorTokens: number
}

/**
 * Prefers the replica that has most of the prompt in its cache, then the first one by rendezvous hashing. A replica
 * above the load bound is passed over, unless all are.
 *
 * @param candidates at least one
 */
export function chooseByPrefix<C extends Candidate>(
  candidates: readonly C[],
  prompt: RoutedPrompt,
  bound: LoadBound,
): C {
  const cachedTokens = ({ cacheId }: C): number => prompt.cachedTokens.get(cacheId) ?? 0
  const order = candidates
    .map((candidate) => ({
      candidate,
      cached: prompt.prefersCached ? cachedTokens(candidate) : 0,
      rank: rankOf(prompt.key, candidate.url),
    }))
    .sort((a, b) => b.cached - a.cached || (a.rank < b.rank ? -1 : 1))
  const total = sum(candidates.map(({ outstandingTokens }) => outstandingTokens))
  const weights = sum(candidates.map(({ weight }) => weight))
  const hasRoom = (candidate: C): boolean => {
    const { outstandingTokens, weight } = candidate
    if (outstandingTokens === 0 && weight === 1) return true
    const added = costOf(prompt, candidate)
    const mean = (total + added) / weights
    return outstandingTokens + added <= weight * Math.max(bound.floorTokens, bound.factor * mean)
  }
  const chosen = order.find(({ candidate }) => hasRoom(candidate))?.candidate
  return chosen ?? leastLoaded(candidates, (candidate) => costOf(prompt, candidate))
}

/**
 * Chooses the replica that has least to do after it gets the call. The first one of equals.
 *
 * @param candidates at least one
 * @param costOf tokens of the call on a replica
 */
export const leastLoaded = <C extends Candidate>(
  candidates: readonly C[],
  costOf: (candidate: C) => number = () => 0,
): C => {
  const loadOf = (one: C): number => (one.outstandingTokens + costOf(one)) / one.weight
  return candidates.reduce((best, one) => (loadOf(one) < loadOf(best) ? one : best))
}

/** Tokens that a replica evaluates and generates for a call: those of the prompt that it has in its cache are free. */
export const costOf = (prompt: RoutedPrompt, { cacheId }: Candidate): number =>
  prompt.tokens - (prompt.cachedTokens.get(cacheId) ?? 0) + prompt.outputTokens

/**
 * Chooses as `balance` says.
 *
 * @param candidates at least one
 * @param turn number of earlier choices
 */
export function chooseReplica<C extends Candidate>(
  candidates: readonly C[],
  prompt: RoutedPrompt | undefined,
  { balance, bound, turn }: { readonly balance: Balance; readonly bound: LoadBound; readonly turn: number },
): C {
  // So that equals take turns.
  const start = turn % candidates.length
  const rotated = [...candidates.slice(start), ...candidates.slice(0, start)]
  if (balance === 'round-robin') return rotated[0] as C
  if (!prompt) return leastLoaded(rotated)
  if (balance === 'prefix') return chooseByPrefix(candidates, prompt, bound)
  return leastLoaded(rotated, (candidate) => costOf(prompt, candidate))
}

/** Rendezvous hashing: when a replica leaves, only its own prompts move. */
const rankOf = (key: string, url: string): string =>
  createHash('sha256').update(`${key} ${url}`).digest('hex')

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0)
