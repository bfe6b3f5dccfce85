import { expect, test } from 'vitest'
import { daysOf, intervalStarts, rangeOf } from './ranges.ts'

const now = new Date('2026-03-01T12:34:56Z')

test('A day of hours ends with the hour that runs', () => {
  const starts = intervalStarts(rangeOf('24h'), 'hour', now)
  expect(starts).toHaveLength(24)
  expect(starts[0]).toBe('2026-02-28T13:00:00.000Z')
  expect(starts.at(-1)).toBe('2026-03-01T12:00:00.000Z')
})

test('Days begin at midnight in UTC', () => {
  const starts = intervalStarts(rangeOf('7d'), 'day', now)
  expect(starts).toHaveLength(7)
  expect(starts[0]).toBe('2026-02-23T00:00:00.000Z')
  expect(starts.at(-1)).toBe('2026-03-01T00:00:00.000Z')
})

test('An unknown range is the first one', () => {
  expect(rangeOf('1y').id).toBe('24h')
})

test('A range of days contains today', () => {
  expect(daysOf(rangeOf('30d'), now)).toEqual({ from: '2026-01-30', to: '2026-03-01' })
})
