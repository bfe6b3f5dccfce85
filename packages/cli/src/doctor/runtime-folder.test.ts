import { expect, test } from 'vitest'
import { emptyFolder } from '../../../../test/support/empty-folder.ts'
import { checkRuntimeFolder } from './runtime-folder.ts'

const path = emptyFolder()

test('a private folder is ok', () => {
  expect(checkRuntimeFolder({ runtimeDir: { path, problem: undefined } })).toMatchObject({
    status: 'ok',
    message: expect.stringContaining(`${path} is private`),
  })
})

test.each([
  ['not-private', /chmod 700/],
  ['unwritable', /install -d -m 700/],
  ['too-long', /local\.runtimeDir/],
] as const)('a folder that apps cannot share, %s, is a warning with a fix', (problem, fix) => {
  expect(checkRuntimeFolder({ runtimeDir: { path, problem } })).toMatchObject({
    status: 'warning',
    fix: expect.stringMatching(fix),
  })
})

test('without any folder that can be written, no model can be loaded', () => {
  expect(checkRuntimeFolder({ runtimeDir: { path: `${path}/missing`, problem: undefined } })).toMatchObject({
    status: 'problem',
  })
})
