import { expect, test } from 'vitest'
import { LlmError } from '../errors.ts'
import { limitHeaders, retryHeaders } from './headers.ts'

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
