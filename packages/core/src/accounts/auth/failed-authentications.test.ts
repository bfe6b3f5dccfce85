import { expect, test } from 'vitest'
import { FailedAuthentications } from './failed-authentications.ts'

test('an address may fail as often as the limit says, and again when a part of the minute is over', () => {
  let now = 0
  const failures = new FailedAuthentications(2, () => now)
  const count = () => failures.count('192.0.2.1')

  expect([count(), count(), count(), count()]).toEqual([0, 0, 30_000, 30_000])
  now = 29_999
  expect(count()).toBe(1)
  now = 30_000
  expect([count(), count()]).toEqual([0, 30_000])
  now = 1e9
  expect([count(), count(), count()]).toEqual([0, 0, 30_000])
})

test('a failure that is taken back does not count, and the limit is not exceeded', () => {
  const failures = new FailedAuthentications(1, () => 0)

  expect([failures.count('a'), failures.count('a')]).toEqual([0, 60_000])
  failures.uncount('a')
  failures.uncount('a')
  expect([failures.count('a'), failures.count('a')]).toEqual([0, 60_000])
})

test('the latest ten thousand addresses are in memory', () => {
  const failures = new FailedAuthentications(1, () => 0)

  for (let index = 0; index <= 10_000; index++) failures.count(`${index}`)

  expect(failures.size).toBe(10_000)
  expect([failures.count('10000'), failures.count('0')]).toEqual([60_000, 0])
})
