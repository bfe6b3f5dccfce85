import { expect, test } from 'vitest'
import { listChanges, mergeLimits } from './limit-changes.ts'

test('The own limits of a key replace those of its tier', () => {
  expect(mergeLimits({ concurrent: 5 }, { concurrent: 1, requestsPerMinute: 10 })).toEqual({
    concurrent: 5,
    requestsPerMinute: 10,
  })
})

test('A change shows the requested limit and the one that applies', () => {
  const changes = listChanges(
    {
      limits: { requestsPerMinute: 1_000, tokensPerDay: 5, perEndUser: { concurrent: 2 } },
      spendingLimit: { usd: '5.5', period: 'month' },
    },
    {
      limits: { requestsPerMinute: 10, perEndUser: { concurrent: 3 } },
      spendingLimit: { usd: 1, period: 'month' },
    },
  )

  expect(changes).toEqual([
    { name: 'Spending limit', requested: '$5.50 per month', current: '$1.00 per month', isLower: false },
    { name: 'Requests per minute', requested: '1,000', current: '10', isLower: false },
    { name: 'Tokens per day', requested: '5', current: undefined, isLower: true },
    { name: 'Concurrent calls, each end user', requested: '2', current: '3', isLower: true },
  ])
})

test.each([
  ['day', 1, 'month', 31, false],
  ['day', 1, 'month', '30.999999999', true],
  ['day', 1, 'lifetime', 1_000, true],
  ['month', 1, 'lifetime', 1_000, true],
  ['month', 5, 'day', 5, false],
  ['lifetime', 5, 'month', 4, true],
  ['lifetime', 5, 'day', 5, false],
] as const)('$1 per %s with %d, requested per %s with %s', (period, usd, wanted, amount, isLower) => {
  const change = listChanges(
    { limits: {}, spendingLimit: { usd: amount, period: wanted } },
    { limits: {}, spendingLimit: { usd, period } },
  )

  expect(change).toMatchObject([{ isLower }])
})
