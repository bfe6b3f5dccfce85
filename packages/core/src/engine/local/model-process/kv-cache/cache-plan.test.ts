import { expect, test } from 'vitest'
import { type Breakpoint, CachePlan } from './cache-plan.ts'

const short = (length: number): Breakpoint => ({ length, lifetime: '5m' })
const long = (length: number): Breakpoint => ({ length, lifetime: '1h' })
const told = (plan: CachePlan): readonly number[] => {
  const { reusedTokens, cacheReadTokens, cacheWriteTokens } = plan.usage
  return [reusedTokens, cacheReadTokens, cacheWriteTokens['1h'], cacheWriteTokens['5m']]
}

test.each<[string, ConstructorParameters<typeof CachePlan>, readonly number[]]>([
  ['no cache and no breakpoints', [0, 0, []], [0, 0, 0, 0]],
  ['nothing is cached yet', [0, 0, [short(100), short(300)]], [0, 0, 0, 300]],
  ['the first breakpoint is cached', [100, 100, [short(100), short(300)]], [100, 100, 0, 200]],
  ['all breakpoints are cached', [320, 300, [short(100), short(300)]], [320, 300, 0, 0]],
  ['more tokens are reused than were cached for a breakpoint', [320, 100, [short(300)]], [320, 100, 0, 200]],
  ['the cached prefix cannot be reused', [0, 300, [short(300)]], [0, 0, 0, 300]],
  ['only a part of the cached prefix is reused', [64, 300, [short(300)]], [64, 64, 0, 236]],
  ['the longer lifetime comes first', [0, 0, [long(100), short(300)]], [0, 0, 100, 200]],
  ['tokens after the hit are divided', [50, 50, [long(100), long(200), short(300)]], [50, 50, 150, 100]],
  ['the hit is longer than the `1h` prefix', [200, 200, [long(100), short(300)]], [200, 200, 0, 100]],
  ['the longer lifetime comes last', [0, 0, [short(100), long(300)]], [0, 0, 300, 0]],
])('%s', (_, [reused, leased, writes], expected) => {
  expect(told(new CachePlan(reused, leased, writes))).toEqual(expected)
})

test('a dropped write is not reported', () => {
  const writes = [long(100), short(300)]
  const plan = new CachePlan(0, 0, writes)

  plan.dropWrite(writes[1] as Breakpoint)

  expect(told(plan)).toEqual([0, 0, 100, 0])
})
