import { expect, test } from 'vitest'
import { formatDuration, formatRelative } from './time.ts'

const now = new Date('2026-03-01T12:00:00Z')
const at = (seconds: number) => new Date(now.getTime() + seconds * 1_000)

test('Relative times use the largest unit that fits', () => {
  expect(formatRelative(at(-30), now)).toBe('30 seconds ago')
  expect(formatRelative(at(-3_599), now)).toBe('59 minutes ago')
  expect(formatRelative(at(-3_600), now)).toBe('1 hour ago')
  expect(formatRelative(at(86_400 * 3), now)).toBe('in 3 days')
})

test.each([
  [0, '0 ms'],
  [250, '250 ms'],
  [1_250, '1.3 s'],
  [65_000, '1 min 5 s'],
  [3_600_000, '1 h'],
  [90_061_000, '1 d 1 h'],
])('formats %d ms as %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text)
})
