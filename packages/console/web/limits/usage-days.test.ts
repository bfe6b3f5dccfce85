import { expect, test } from 'vitest'
import { fillDays, sumUsage } from './usage-days.ts'

const tokens = { input: 10, cachedInput: 5, cacheWrite: 1, output: 3 }
const rows = [
  { group: '2026-02-28', calls: 1, tokens, nanoUsd: '9007199254740993' },
  { group: '2026-03-01', calls: 2, tokens, nanoUsd: '1' },
]

test('Sums of money are exact beyond what a number can hold', () => {
  expect(sumUsage(rows)).toEqual({
    calls: 3,
    input: 32,
    cachedInput: 10,
    output: 6,
    nanoUsd: 9_007_199_254_740_994n,
  })
})

test('Days without calls cost nothing', () => {
  expect(fillDays(rows, '2026-03-02', 4)).toEqual([
    { day: '2026-02-27', nanoUsd: 0n },
    { day: '2026-02-28', nanoUsd: 9_007_199_254_740_993n },
    { day: '2026-03-01', nanoUsd: 1n },
    { day: '2026-03-02', nanoUsd: 0n },
  ])
})
