import { expect, test } from 'vitest'
import { parseUsd, toNanoUsdLimit, toSpendingLimit, toUsd } from './spending-limit.ts'

test.each([
  [0, 0],
  [10, 10_000_000_000],
  [0.1, 100_000_000],
  [0.29, 290_000_000],
  [1e-9, 1],
  [0.100000001, 100_000_001],
  ['10', 10_000_000_000],
  ['1.50', 1_500_000_000],
  ['0.000000001', 1],
  ['9007199.254740991', Number.MAX_SAFE_INTEGER],
])('%j dollars are %i nano-dollars', (usd, nanoUsd) => {
  expect(parseUsd(usd)).toBe(nanoUsd)
})

test.each([
  ...[-1, 0.1 + 0.2, 1e-10, 9_007_200, Number.NaN, Number.POSITIVE_INFINITY, null, undefined],
  ...[
    '',
    '-1',
    '+1',
    '1e3',
    '1.',
    '.5',
    ' 1',
    '$1',
    '1,000',
    '0.0000000001',
    '9007199.254740992',
    '99999999',
  ],
])('%j is not an amount', (usd) => {
  expect(parseUsd(usd)).toBeUndefined()
})

test('reports an amount as a number where that is exact, else as a decimal string', () => {
  expect([0, 1, 100_000_001, 2_500_000_000].map(toUsd)).toEqual([0, 1e-9, 0.100000001, 2.5])
  expect(toUsd(8_999_999_999_999_999)).toBe('8999999.999999999')
})

test('each amount survives a round trip', () => {
  const largest = Array.from({ length: 1_000 }, (_, index) => Number.MAX_SAFE_INTEGER - index * 7)
  const others = Array.from({ length: 1_000 }, (_, index) => Math.floor(1.7 ** (index % 69)) + index)
  for (const nanoUsd of [...largest, ...others]) expect(parseUsd(toUsd(nanoUsd))).toBe(nanoUsd)
  for (const nanoUsd of others) if (nanoUsd < 8e15) expect(toUsd(nanoUsd)).toBeTypeOf('number')
})

test('an invalid amount throws instead of meaning no limit', () => {
  expect(toNanoUsdLimit({ usd: 0, period: 'day' })).toEqual({ nanoUsd: 0, period: 'day' })
  expect(() => toNanoUsdLimit({ usd: 'all', period: 'day' })).toThrow(
    'Expected `usd` to be an amount of dollars, got all',
  )
  expect(() => toNanoUsdLimit(toSpendingLimit({ period: 'day' } as never))).toThrow(TypeError)
})
