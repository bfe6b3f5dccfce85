import { expect, test } from 'vitest'
import { checkNode } from './node.ts'

test.each([
  ['20.19.0', 'ok'],
  ['24.1.0', 'ok'],
  ['20.18.3', 'problem'],
  ['18.20.0', 'problem'],
])('Node.js %s is %s if 20.19 is required', (version, status) => {
  expect(checkNode('>=20.19', version).status).toBe(status)
})
