import { expect, test } from 'vitest'
import { openNativeTemplates } from './native-templates.ts'

test('native code renders a template, and throws for one that it cannot parse', async () => {
  const fill = await openNativeTemplates()

  expect(fill?.('{{ names.pop() }} of {{ names | length }}', { names: ['a', 'b', 'c'] })).toBe('c of 2')
  expect(() => fill?.('{% if %}', {})).toThrow()
})
