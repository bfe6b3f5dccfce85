import { expect, test } from 'vitest'
import {
  type Candidate,
  chooseByPrefix,
  chooseReplica,
  costOf,
  leastLoaded,
  type RoutedPrompt,
} from './choose-replica.ts'

const bound = { factor: 1.25, floorTokens: 1_000 }
const candidate = (index: number, outstandingTokens = 0, weight = 1): Candidate => ({
  ...{ url: `http://replica-${index}/`, cacheId: index, outstandingTokens, weight },
})
const fleet = (...loads: readonly number[]): Candidate[] => loads.map((load, index) => candidate(index, load))
const prompt = (key: string, cached: Readonly<Record<number, number>> = {}, tokens = 400): RoutedPrompt => ({
  ...{ key, tokens, blocks: [], outputTokens: 100, prefersCached: Object.keys(cached).length > 0 },
  cachedTokens: new Map(Object.entries(cached).map(([id, count]) => [Number(id), count])),
})
const idOf = (chosen: Candidate): number => chosen.cacheId

test('the replica with most of the prompt gets the call', () => {
  expect(idOf(chooseByPrefix(fleet(0, 0, 0), prompt('a', { 1: 100, 2: 300 }), bound))).toBe(2)
})

test('without a cache, conversations spread evenly, and each always has the same replica', () => {
  const counts = [0, 0, 0, 0]
  for (let index = 0; index < 4_000; index++) {
    const chosen = idOf(chooseByPrefix(fleet(0, 0, 0, 0), prompt(`key ${index}`), bound))
    expect(idOf(chooseByPrefix(fleet(0, 0, 0, 0).reverse(), prompt(`key ${index}`), bound))).toBe(chosen)
    counts[chosen] = (counts[chosen] ?? 0) + 1
  }
  for (const count of counts) expect(count).toBeGreaterThan(850)
})

test('when a replica leaves, only its own conversations move', () => {
  const all = fleet(0, 0, 0, 0)
  for (let index = 0; index < 500; index++) {
    const before = idOf(chooseByPrefix(all, prompt(`key ${index}`), bound))
    const after = idOf(chooseByPrefix(all.slice(0, 3), prompt(`key ${index}`), bound))
    if (before !== 3) expect(after).toBe(before)
  }
})

test('a replica that would have more than 1.25 times the mean is passed over', () => {
  // 2,600 of 8,400 tokens would be 1.24 times the mean of 2,100, and 2,700 of 8,500 would be 1.27 times.
  const own = prompt('a', { 0: 400 })

  expect(idOf(chooseByPrefix(fleet(2_500, 1_933, 1_933, 1_934), own, bound))).toBe(0)
  expect(idOf(chooseByPrefix(fleet(2_600, 1_933, 1_933, 1_934), own, bound))).not.toBe(0)
})

test('a replica below the floor keeps its conversations while the others are idle', () => {
  expect(idOf(chooseByPrefix(fleet(900, 0, 0), prompt('a', { 0: 400 }), bound))).toBe(0)
  expect(idOf(chooseByPrefix(fleet(901, 0, 0), prompt('a', { 0: 400 }), bound))).not.toBe(0)
})

test('an idle replica gets its conversation even if one call is more than the floor', () => {
  expect(idOf(chooseByPrefix(fleet(0, 0, 0), prompt('a', { 2: 50 }, 100_000), bound))).toBe(2)
})

test('no replica ever has more than 1.25 times the mean, whatever the prompts are', () => {
  let seed = 1
  const random = (): number => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed / 2_147_483_647
  }
  const loads = [0, 0, 0, 0, 0]
  const running: { readonly id: number; readonly tokens: number }[] = []
  let moved = 0
  for (let step = 0; step < 20_000; step++) {
    if (running.length > 400) {
      const [ended] = running.splice(Math.floor(random() * running.length), 1)
      if (ended) loads[ended.id] = (loads[ended.id] ?? 0) - ended.tokens
    }
    // Most conversations belong to replica 0.
    const home = random() < 0.6 ? 0 : Math.floor(random() * 5)
    const tokens = 50 + Math.floor(random() * 300)
    const call = prompt(`key ${step}`, { [home]: tokens }, tokens)
    const chosen = chooseByPrefix(fleet(...loads), call, bound)
    if (idOf(chosen) !== home) moved++
    const cost = costOf(call, chosen)
    loads[idOf(chosen)] = chosen.outstandingTokens + cost
    running.push({ id: idOf(chosen), tokens: cost })
    const mean = loads.reduce((sum, load) => sum + load, 0) / 5
    expect(loads[idOf(chosen)]).toBeLessThanOrEqual(Math.max(1_000, 1.25 * mean))
  }
  expect(moved).toBeGreaterThan(1_000)
})

test('if each replica is above the bound, the least loaded gets the call', () => {
  expect(idOf(chooseByPrefix(fleet(5_000, 4_000, 5_000), prompt('a', { 0: 1 }, 40_000), bound))).toBe(1)
})

test('a replica that starts gets less', () => {
  const starting = [candidate(0, 100, 0.1), candidate(1, 900)]

  expect(idOf(chooseByPrefix(starting, prompt('a', { 0: 400 }), bound))).toBe(1)
  expect(idOf(leastLoaded(starting))).toBe(1)
})

test('equals take turns', () => {
  const turns = [0, 1, 2, 3, 4, 5]
  const choose = (balance: 'least-tokens' | 'round-robin', ...loads: readonly number[]) =>
    turns.map((turn) => idOf(chooseReplica(fleet(...loads), undefined, { balance, bound, turn })))

  expect(choose('round-robin', 0, 900, 0)).toEqual([0, 1, 2, 0, 1, 2])
  expect(choose('least-tokens', 0, 0, 0)).toEqual([0, 1, 2, 0, 1, 2])
  expect(choose('least-tokens', 0, 900, 0)).toEqual([0, 2, 2, 0, 2, 2])
})
