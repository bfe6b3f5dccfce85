import { expect, test } from 'vitest'
import type { TrafficRow } from './traffic.ts'
import { share, sumGroups, sumTraffic } from './traffic-sums.ts'

const row: TrafficRow = {
  at: '2026-03-01T12:00:00.000Z',
  calls: 2,
  errors: 1,
  inputTokens: 10,
  cachedInputTokens: 4,
  outputTokens: 3,
  nanoUsd: '9007199254740993',
  firstTokenMs: null,
  durationMs: null,
}

test('Sums of money are exact beyond what a number can hold', () => {
  expect(sumTraffic([row, row])).toEqual({
    calls: 4,
    errors: 2,
    inputTokens: 20,
    cachedInputTokens: 8,
    outputTokens: 6,
    nanoUsd: 18_014_398_509_481_986n,
  })
})

test('The group with most calls comes first, with its last name', () => {
  const rows = [
    { ...row, group: 'key_a', name: 'Old name' },
    { ...row, group: 'night-job', calls: 5 },
    { ...row, group: 'key_a', name: 'New name' },
    { ...row, group: '', calls: 1 },
  ]
  expect(
    sumGroups({ by: 'key', rows }).map(({ id, name, isKey, calls }) => [id, name, isKey, calls]),
  ).toEqual([
    ['night-job', 'night-job', false, 5],
    ['key_a', 'New name', true, 4],
    ['', 'The app itself', false, 1],
  ])
  expect(sumGroups({ by: 'model', rows: [{ ...row, group: '' }] })[0]?.name).toBe('Unknown models')
})

test('No part of nothing has a share', () => {
  expect(share(0, 0)).toBeUndefined()
  expect(share(1, 4)).toBe(0.25)
})
