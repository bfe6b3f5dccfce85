import { afterEach, expect, test, vi } from 'vitest'
import { toExpiry, toKeepAlive } from './keep-alive.ts'

afterEach(() => {
  vi.useRealTimers()
})

test.each([
  [0, 0],
  [300, 300_000],
  [0.5, 500],
  ['0', 0],
  ['10m', 600_000],
  ['1h30m', 5_400_000],
  [-1, 'forever'],
  [-0.001, 'forever'],
  ['-1s', 'forever'],
  [Number.POSITIVE_INFINITY, 2 ** 63 / 1e6],
  [1e300, 2 ** 63 / 1e6],
])('%j is kept for %j milliseconds', (value, ms) => {
  expect(toKeepAlive(value)).toBe(ms)
})

test.each([[''], ['300'], ['soon'], ['10 m'], ['1e9h'], ['9999999h'], [true], [{}], [[5]]])(
  '%j is no time',
  (value) => {
    expect(toKeepAlive(value)).toBeUndefined()
  },
)

test('a text of megabytes is refused at once', () => {
  const startedAt = performance.now()

  expect(toKeepAlive('1'.repeat(1_000_000))).toBeUndefined()
  expect(performance.now() - startedAt).toBeLessThan(1_000)
})

test('a date is said as it is, and never is centuries away', () => {
  vi.useFakeTimers({ now: new Date('2026-01-02T03:04:05Z') })

  expect(toExpiry(new Date('2026-01-02T03:09:05Z'))).toBe('2026-01-02T03:09:05.000Z')
  expect(toExpiry('never')).toMatch(/^2318-/)
})
