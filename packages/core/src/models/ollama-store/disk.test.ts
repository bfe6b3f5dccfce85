import { expect, test } from 'vitest'
import { toDiskError } from './disk.ts'

test.each([null, undefined, 'text'])('a thrown %j is returned unchanged', (cause) => {
  expect(toDiskError(cause)).toBe(cause)
})
