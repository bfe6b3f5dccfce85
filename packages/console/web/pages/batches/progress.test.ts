import { expect, test } from 'vitest'
import { progressOf, progressText, remainingMs } from './progress.ts'

const counts = { processing: 60, succeeded: 30, errored: 5, canceled: 3, expired: 2 }
const none = { processing: 0, succeeded: 0, errored: 0, canceled: 0, expired: 0 }

test('All outcomes count as progress', () => {
  expect(progressOf({ counts })).toBe(0.4)
  expect(progressText({ counts, status: 'in_progress' })).toBe('40 of 100')
})

test('A batch without requests has no progress', () => {
  expect(progressOf({ counts: none })).toBe(0)
  expect(progressText({ counts: none, status: 'validating' })).toBe('Reading the requests')
})

test('The remaining time follows from the pace so far', () => {
  const batch = { counts, status: 'in_progress', startedAt: '2026-03-01T12:00:00Z' } as const
  expect(remainingMs(batch, new Date('2026-03-01T12:00:40Z'))).toBe(60_000)
  expect(remainingMs({ ...batch, counts: none }, new Date('2026-03-01T12:00:40Z'))).toBeUndefined()
  expect(remainingMs({ ...batch, status: 'canceling' }, new Date('2026-03-01T12:00:40Z'))).toBeUndefined()
})
