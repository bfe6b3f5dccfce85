import { expect, test } from 'vitest'
import { formatUsd, isUsd } from './money.ts'

test.each([
  ['10', 10, '$10.00'],
  ['0.1', 0.1, '$0.10'],
  ['0.29', 0.29, '$0.29'],
  ['12.345', 12.345, '$12.345'],
  ['0.000000001', 1e-9, '$0.000000001'],
  ['9007199.254740991', '9007199.254740991', '$9007199.254740991'],
  ['0', 0, '$0.00'],
])('%s dollars are an amount, and printed with two decimal places or more', (text, usd, printed) => {
  expect(isUsd(text)).toBe(true)
  expect([formatUsd(text), formatUsd(usd)]).toEqual([printed, printed])
})

test.each(['', '-1', '1e3', '0.0000000001', '99999999', '$5', ' 5', '5.'])('%j is no amount', (text) => {
  expect(isUsd(text)).toBe(false)
})
