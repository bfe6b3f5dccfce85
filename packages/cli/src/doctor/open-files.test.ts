import { expect, test } from 'vitest'
import { checkOpenFiles } from './open-files.ts'

test.each([
  [undefined, 'ok'],
  [65_536, 'ok'],
  [1_024, 'warning'],
  [256, 'problem'],
])('a limit of %s open files is %s', (limit, status) => {
  expect(checkOpenFiles(limit).status).toBe(status)
})
