import { expect, test } from 'vitest'
import { daysOfRange, fillReport, type RangeId, toRangeId } from './date-ranges.ts'

const now = new Date('2026-03-15T23:30:00Z')
const custom = { from: '2026-01-02', to: '2026-01-03' }

test.each<[RangeId, string, string]>([
  ['30d', '2026-02-14', '2026-03-15'],
  ['year', '2025-03-16', '2026-03-15'],
  ['month', '2026-03-01', '2026-03-15'],
  ['last-month', '2026-02-01', '2026-02-28'],
  ['custom', '2026-01-02', '2026-01-03'],
])('%s is from %s to %s', (id, from, to) => {
  expect(daysOfRange(id, custom, now)).toEqual({ from, to })
})

test('The month before January is in the year before', () => {
  expect(daysOfRange('last-month', custom, new Date('2026-01-01T00:00:00Z'))).toEqual({
    from: '2025-12-01',
    to: '2025-12-31',
  })
})

test.each(['', 'century', 'constructor'])('The range %s is the first one', (id) => {
  expect(toRangeId(id)).toBe('30d')
})

test('Days without a row are filled in, in order', () => {
  const [early, late] = [{ group: '2026-02-28' }, { group: '2026-03-02' }]
  expect(fillReport([late, early], { from: '2026-02-27', to: '2026-03-02' })).toEqual([
    { day: '2026-02-27', row: undefined },
    { day: '2026-02-28', row: early },
    { day: '2026-03-01', row: undefined },
    { day: '2026-03-02', row: late },
  ])
})

test('Without a first day, the report begins at its first row', () => {
  expect(fillReport([{ group: '2026-03-01' }], { from: '', to: '2026-03-02' }).map(({ day }) => day)).toEqual(
    ['2026-03-01', '2026-03-02'],
  )
  expect(fillReport([], { from: '', to: '' })).toEqual([])
})

test('Months stay as they are', () => {
  const rows = [{ group: '2025-01' }, { group: '2026-03-01' }]
  expect(fillReport(rows, { from: '2025-01-01', to: '2026-03-02' }).map(({ day }) => day)).toEqual([
    '2025-01',
    '2026-03-01',
  ])
})
