import { expect, test } from 'vitest'
import { sealed, unsealed } from './opaque-reasoning.ts'

test.each(['Hm.', '', '👩‍🚀 é\n', 'a'.repeat(10_000)])('what was sealed comes out as it was: %j', (text) => {
  expect(sealed(text)).not.toContain('Hm')
  expect(unsealed(sealed(text))).toBe(text)
})

test.each(['', 'gAAAAABo', 'Hm.', 'sealed'])("of another server's seal nothing comes out: %j", (seal) => {
  expect(unsealed(seal)).toBe('')
})
