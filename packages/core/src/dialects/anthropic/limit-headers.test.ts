import { afterEach, expect, test, vi } from 'vitest'
import { limitHeaders } from './limit-headers.ts'

afterEach(() => vi.useRealTimers())

test('the reset of a limit is a timestamp in whole seconds, rounded up', () => {
  vi.useFakeTimers({ now: Date.parse('2026-01-12T23:59:58.200Z') })

  const headers = limitHeaders([{ name: 'tokens', limit: 1_000, remaining: 990, resetMs: 801 }])

  expect(headers).toEqual({
    'anthropic-ratelimit-tokens-limit': '1000',
    'anthropic-ratelimit-tokens-remaining': '990',
    'anthropic-ratelimit-tokens-reset': '2026-01-13T00:00:00Z',
  })
})

test('a limit per day does not replace the limit per minute', () => {
  const perMinute = { name: 'tokens', limit: 1_000, remaining: 990, resetMs: 600 } as const
  const perDay = {
    name: 'tokens',
    limit: 50,
    remaining: 0,
    resetMs: 7_200_000,
    windowMs: 86_400_000,
  } as const

  expect(limitHeaders([perMinute, perDay])).toMatchObject({
    'anthropic-ratelimit-tokens-limit': '1000',
    'anthropic-ratelimit-tokens-remaining': '990',
  })
})
