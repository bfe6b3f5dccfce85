import { expect, test } from 'vitest'
import { formatAge } from './age.ts'

test.each([
  [-500, '0 s'],
  [8_900, '8 s'],
  [65_100, '1 min 5 s'],
])('%d ms are %s', (ms, text) => {
  expect(formatAge(1_000, 1_000 + ms)).toBe(text)
})
