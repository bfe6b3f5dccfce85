import { expect, test } from 'vitest'
import { humanBytes, humanTime, shortDuration } from './human.ts'

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [1_000, '1 KB'],
  [1_500, '1.5 KB'],
  [3_900_000, '3.9 MB'],
  [71_234_567, '71 MB'],
  [4_661_224_676, '4.7 GB'],
  [1_200_000_000_000, '1.2 TB'],
  [5_000_000_000_000_000, '5000 TB'],
])('%i bytes are %s', (bytes, text) => {
  expect(humanBytes(bytes)).toBe(text)
})

const now = Date.parse('2026-01-31T12:00:00Z')
test.each([
  ['2026-01-31T11:59:59.500Z', 'Less than a second ago'],
  ['2026-01-31T11:59:59Z', '1 second ago'],
  ['2026-01-31T11:59:15Z', '45 seconds ago'],
  ['2026-01-31T11:58:30+00:00', 'About a minute ago'],
  ['2026-01-31T13:38:00+02:00', '22 minutes ago'],
  ['2026-01-31T11:00:00Z', 'About an hour ago'],
  ['2026-01-30T06:00:00Z', '30 hours ago'],
  ['2026-01-26T12:00:00Z', '5 days ago'],
  ['2026-01-10T12:00:00Z', '3 weeks ago'],
  ['2025-08-31T12:00:00Z', '5 months ago'],
  ['2022-08-31T12:00:00Z', '3 years ago'],
  ['2026-01-31T12:04:59Z', '4 minutes from now'],
  ['2318-01-31T12:00:00Z', 'Forever'],
])('%s is %s', (date, text) => {
  expect(humanTime(date, now)).toBe(text)
})

test.each([
  [312.4, '312ms'],
  [4_249, '4.2s'],
  [45_400, '45s'],
  [187_000, '3m7s'],
])('%d ms are %s', (ms, text) => {
  expect(shortDuration(ms)).toBe(text)
})
