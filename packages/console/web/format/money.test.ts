import { expect, test } from 'vitest'
import { formatCompactUsd, formatUsd, fraction, parseUsd } from './money.ts'

test.each([
  ['0', '$0.00'],
  ['1', '$0.000000001'],
  ['1500000', '$0.0015'],
  ['10000000', '$0.01'],
  ['1000000000', '$1.00'],
  ['1234567891234567891', '$1,234,567,891.234567891'],
  ['-2500000000', '−$2.50'],
])('formats %s nanodollars as %s', (nanoUsd, text) => {
  expect(formatUsd(nanoUsd)).toBe(text)
})

test.each([
  ['12.5', 12_500_000_000n],
  ['$3', 3_000_000_000n],
  ['0.000000001', 1n],
  ['9007199.254740991', 9_007_199_254_740_991n],
])('parses %s exactly', (text, nanoUsd) => {
  expect(parseUsd(text)).toBe(nanoUsd)
})

test.each(['', 'ten', '-1', '1,000', '1e3', '0.0000000001'])('does not parse %s', (text) => {
  expect(parseUsd(text)).toBeUndefined()
})

test('A limit of zero dollars is used up', () => {
  expect(fraction('0', '0')).toBe(1)
  expect(fraction('1', '4')).toBe(0.25)
  expect(fraction('5', '4')).toBe(1)
})

test.each([
  [0, '$0'],
  [0.00123, '$0.0012'],
  [0.5, '$0.5'],
  [1_234, '$1.2K'],
])('an axis has %d dollars as %s', (usd, text) => {
  expect(formatCompactUsd(usd)).toBe(text)
})
