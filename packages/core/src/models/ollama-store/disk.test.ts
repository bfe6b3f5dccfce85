import { expect, test } from 'vitest'
import { toDiskError } from './disk.ts'

test.each([null, undefined, 'text'])('%j, which anybody may throw, is passed on', (cause) => {
  expect(toDiskError(cause)).toBe(cause)
})
