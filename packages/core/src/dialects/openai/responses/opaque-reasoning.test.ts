import { expect, test } from 'vitest'
import { decodeReasoning, encodeReasoning } from './opaque-reasoning.ts'

test.each(['Hm.', '', '👩‍🚀 é\n', 'a'.repeat(10_000)])('what was sealed comes out as it was: %j', (text) => {
  expect(encodeReasoning(text)).not.toContain('Hm')
  expect(decodeReasoning(encodeReasoning(text))).toBe(text)
})

test.each(['', 'gAAAAABo', 'Hm.', 'sealed'])("of another server's seal nothing comes out: %j", (seal) => {
  expect(decodeReasoning(seal)).toBe('')
})
