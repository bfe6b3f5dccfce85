import { expect, test } from 'vitest'
import { listChanges, mergeLimits, toLimits } from './limit-changes.ts'

test('The own limits of a key replace those of its tier', () => {
  expect(mergeLimits({ concurrent: 5 }, { concurrent: 1, requestsPerMinute: 10 })).toEqual({
    concurrent: 5,
    requestsPerMinute: 10,
  })
})

test('A change shows the requested limit and the one that applies', () => {
  const changes = listChanges(
    { requestsPerMinute: 1_000, tokensPerDay: 5, perEndUser: { concurrent: 2 } },
    { requestsPerMinute: 10, perEndUser: { concurrent: 1 } },
  )

  expect(changes).toEqual([
    { name: 'Requests per minute', requested: '1,000', current: '10' },
    { name: 'Tokens per day', requested: '5', current: undefined },
    { name: 'Concurrent calls, each end user', requested: '2', current: '1' },
  ])
})

test('The state of the limits shows which ones apply', () => {
  const rest = { limit: 20, remaining: 1, resetMs: 1 } as const

  expect(
    toLimits([
      { name: 'requests', ...rest },
      { name: 'tokens', ...rest, windowMs: 86_400_000 },
    ]),
  ).toEqual({
    requestsPerMinute: 20,
    tokensPerDay: 20,
  })
})
