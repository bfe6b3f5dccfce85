import { expect, test } from 'vitest'
import { isolatedIndices, stackValues, textOf, toTimeText } from './values.ts'

test('Each stacked value stands on those of the series after it', () => {
  expect(
    stackValues([
      [1, 2, null],
      [10, null, 30],
    ]),
  ).toEqual([
    [11, 2, 30],
    [10, 0, 30],
  ])
})

test('Days of the server are shown as days, whatever the zone of the viewer', () => {
  expect(toTimeText(['2026-03-01T00:00:00Z', '2026-03-02T00:00:00Z'], 0)).toBe('Mar 1')
  expect(toTimeText(['2026-03-01T00:00:00Z', '2026-03-01T01:00:00Z'], 0)).toContain(':')
})

test('A value has its exact text, and a gap has none', () => {
  const series = { name: 'Cost', values: [1.5, null], textAt: () => '$1.500000001' }

  expect([textOf(series, 0), textOf(series, 1), textOf(series, null)]).toEqual(['$1.500000001', '–', '–'])
})

test('Values between gaps are found', () => {
  expect(isolatedIndices([1, null, 2, 3, null, 4])).toEqual([0, 5])
})
