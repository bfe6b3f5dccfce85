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
