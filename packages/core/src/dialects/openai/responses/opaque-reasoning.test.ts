import { expect, test } from 'vitest'
import { decodeReasoning, encodeReasoning } from './opaque-reasoning.ts'

test.each(['Hm.', '', '👩‍🚀 é\n', 'a'.repeat(10_000)])(
  'encoded reasoning is decoded unchanged: %j',
  (text) => {
    expect(encodeReasoning(text)).not.toContain('Hm')
    expect(decodeReasoning(encodeReasoning(text))).toBe(text)
  },
)

test.each(['', 'gAAAAABo', 'Hm.', 'sealed'])(
  'encrypted content of another server decodes to an empty text: %j',
  (seal) => {
    expect(decodeReasoning(seal)).toBe('')
  },
)
