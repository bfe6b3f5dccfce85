import { expect, test } from 'vitest'
import { nameAction, toDayEnd, toDayStart } from './audit-texts.ts'

test.each([
  ['createKey', 'Create key'],
  ['approveLimitRequest', 'Approve limit request'],
  ['other', 'Other'],
])('names %s', (action, name) => {
  expect(nameAction(action)).toBe(name)
})

test('A day lasts from its beginning to that of the next day', () => {
  expect(new Date(toDayStart('2026-02-28')).toString()).toContain('Feb 28 2026 00:00:00')
  expect(new Date(toDayEnd('2026-02-28')).toString()).toContain('Mar 01 2026 00:00:00')
})

test('No day is no limit', () => {
  expect([toDayStart(''), toDayEnd('')]).toEqual(['', ''])
})
