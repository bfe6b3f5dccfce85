import { expect, test } from 'vitest'
import { fromNanoUsd, toNanoUsd } from './money.ts'

test.each([
  ['10', 10_000_000_000, '$10.00'],
  ['0.1', 100_000_000, '$0.10'],
  ['0.29', 290_000_000, '$0.29'],
  ['12.345', 12_345_000_000, '$12.345'],
  ['0.000000001', 1, '$0.000000001'],
  ['9007199.254740991', 9_007_199_254_740_991, '$9007199.254740991'],
  ['0', 0, '$0.00'],
])('%s dollars are exact', (text, nanoUsd, shown) => {
  expect(toNanoUsd(text)).toBe(nanoUsd)
  expect(fromNanoUsd(nanoUsd)).toBe(shown)
})

test.each(['', '-1', '1e3', '0.0000000001', '99999999', '9999999.5', '$5', ' 5', '5.'])(
  '%j is no amount',
  (text) => {
    expect(toNanoUsd(text)).toBeUndefined()
  },
)
