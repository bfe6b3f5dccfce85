import { expect, test } from 'vitest'
import { type LimitStatus, LlmError } from '../errors.ts'
import { limitHeaders, retryHeaders, routeLimitHeaders } from './headers.ts'

test('each limit has headers under its name, with the reset time as a duration', () => {
  const headers = limitHeaders([
    { name: 'requests', limit: 60, remaining: 59, resetMs: 12 },
    { name: 'tokens', limit: 1_000, remaining: 0, resetMs: 360_000 },
  ])

  expect(headers).toEqual({
    'x-ratelimit-limit-requests': '60',
    'x-ratelimit-remaining-requests': '59',
    'x-ratelimit-reset-requests': '12ms',
    'x-ratelimit-limit-tokens': '1000',
    'x-ratelimit-remaining-tokens': '0',
    'x-ratelimit-reset-tokens': '6m0s',
  })
})

test('a limit per day does not replace the limit per minute, and is reported where it is the only one', () => {
  const perMinute: LimitStatus = { name: 'tokens', limit: 1_000, remaining: 900, resetMs: 6_000 }
  const perDay: LimitStatus = {
    name: 'tokens',
    limit: 50,
    remaining: 0,
    resetMs: 7_200_000,
    windowMs: 86_400_000,
  }

  expect(limitHeaders([perMinute, perDay])).toEqual(limitHeaders([perMinute]))
  expect(limitHeaders([perDay])).toEqual({
    'x-ratelimit-limit-tokens': '50',
    'x-ratelimit-remaining-tokens': '0',
    'x-ratelimit-reset-tokens': '2h0m0s',
  })
  expect(routeLimitHeaders([perMinute, perDay])).toEqual({
    ...limitHeaders([perMinute]),
    ratelimit: '"1000-tokens-in-1min"; r=900; t=6, "50-tokens-in-1day"; r=0; t=7200',
    'ratelimit-policy': '"1000-tokens-in-1min"; q=1000; w=60, "50-tokens-in-1day"; q=50; w=86400',
  })
})

test.each([
  [1, '1'],
  [999.5, '1'],
  [1_001, '2'],
  [600_000, '600'],
])('a wait of %d ms is rounded up to whole seconds and milliseconds', (retryAfterMs, seconds) => {
  expect(retryHeaders(new LlmError('rate_limit', 'Later.', { retryAfterMs }))).toEqual({
    'retry-after': seconds,
    'retry-after-ms': `${Math.ceil(retryAfterMs)}`,
  })
})

test('clients are told not to retry when the wait exceeds ten minutes', () => {
  const headers = retryHeaders(new LlmError('rate_limit', 'Later.', { retryAfterMs: 600_001 }))

  expect(headers).toEqual({
    'retry-after': '601',
    'retry-after-ms': '600001',
    'x-should-retry': 'false',
  })
})

test('clients do not retry after a spending limit, and other errors have no retry headers', () => {
  expect(retryHeaders(new LlmError('quota', 'Spent.'))).toEqual({ 'x-should-retry': 'false' })
  expect(retryHeaders(new LlmError('internal', 'Broken.'))).toEqual({})
})
