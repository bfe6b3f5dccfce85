import { expect, test } from 'vitest'
import { diskError } from './disk.ts'

test.each([null, undefined, 'text'])('%j, which anybody may throw, is passed on', (cause) => {
  expect(diskError(cause)).toBe(cause)
})
