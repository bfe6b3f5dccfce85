import { afterEach, expect, test, vi } from 'vitest'
import { describeKeepAliveError, toExpiry, toKeepAlive } from './keep-alive.ts'

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
])('the keep-alive %j is %j milliseconds', (value, ms) => {
  expect(toKeepAlive(value)).toBe(ms)
})

test.each([[''], ['300'], ['soon'], ['10 m'], ['1e9h'], ['9999999h'], [true], [{}], [[5]]])(
  '%j is not a keep-alive',
  (value) => {
    expect(toKeepAlive(value)).toBeUndefined()
  },
)

// The messages are Ollama 0.33.0's.
test.each([
  ['300', 'time: missing unit in duration "300"'],
  ['1h30', 'time: missing unit in duration "1h30"'],
  ['1d', 'time: unknown unit "d" in duration "1d"'],
  ['10 m', 'time: unknown unit " m" in duration "10 m"'],
  ['abc', 'time: invalid duration "abc"'],
  ['', 'time: invalid duration ""'],
  ['9999999h', 'time: invalid duration "9999999h"'],
  [true, "Unsupported type: 'bool'"],
  [[], "Unsupported type: '[]interface {}'"],
  [{}, "Unsupported type: 'map[string]interface {}'"],
])('the error for %j is: %s', (value, problem) => {
  expect(describeKeepAliveError(value)).toBe(problem)
})

test('a text of megabytes is rejected fast', () => {
  const startedAt = performance.now()

  expect(toKeepAlive('1'.repeat(1_000_000))).toBeUndefined()
  expect(performance.now() - startedAt).toBeLessThan(1_000)
})

test('an expiry date is unchanged, and "never" is centuries ahead', () => {
  vi.useFakeTimers({ now: new Date('2026-01-02T03:04:05Z') })

  expect(toExpiry(new Date('2026-01-02T03:09:05Z'))).toBe('2026-01-02T03:09:05.000Z')
  expect(toExpiry('never')).toMatch(/^2318-/)
})
