import { expect, test } from 'vitest'
import { toDiskError } from './disk.ts'

test.each([null, undefined, 'text'])('%j, which code can throw, is returned unchanged', (cause) => {
  expect(toDiskError(cause)).toBe(cause)
})
