import { expect, test } from 'vitest'
import { formatBytes, formatCalls } from './numbers.ts'

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [1_000, '1.0 kB'],
  [986_000_000, '986 MB'],
  [4_700_000_000, '4.7 GB'],
  [42_000_000_000, '42 GB'],
])('formats %d bytes as %s', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text)
})

test.each([
  [0, '0 calls'],
  [1, '1 call'],
  [2, '2 calls'],
])('formats %d as %s', (count, text) => {
  expect(formatCalls(count)).toBe(text)
})
