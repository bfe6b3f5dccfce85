import { expect, test } from 'vitest'
import { identifyProcess } from './identity.ts'

const file = { path: '/models/a.gguf', sizeBytes: 9, modifiedAt: new Date(0) }
const identify = (parts: object = {}, load = {}) =>
  identifyProcess({ ...file, ...parts }, { contextSize: 512, ...load })

test('the same file with the same settings and versions is the same process', () => {
  expect(identify()).toEqual(identify())
  expect(identify().name).toMatch(/^[\da-f]{16}$/)
})

test.each([
  ['file', identify({ path: '/models/b.gguf' })],
  ['content', identify({ modifiedAt: new Date(1) })],
  ['load settings', identify({}, { contextSize: 1_024 })],
])('another %s is another process', (_what, other) => {
  expect(other.name).not.toBe(identify().name)
  expect(other.fingerprint).not.toBe(identify().fingerprint)
})
