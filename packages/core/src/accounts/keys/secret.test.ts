import { expect, test } from 'vitest'
import { fits, newSecret, publicIdOf } from './secret.ts'

test('a secret says which one it is, and fits its hash only', () => {
  const [one, other] = [newSecret(), newSecret()]

  expect(one.secret).toMatch(/^sk-mm-[\da-f]{16}-[\w-]{43}$/)
  expect(publicIdOf(one.secret)).toBe(one.publicId)
  expect(fits(one.secret, one.hash)).toBe(true)
  expect(fits(other.secret, one.hash)).toBe(false)
})

test('what is kept and shown does not tell it', () => {
  const { secret, hash, hint, publicId } = newSecret()
  const hidden = secret.slice(-43)

  expect(hash).not.toContain(hidden)
  expect(hint).toBe(`sk-mm-${publicId}-…${hidden.slice(-4)}`)
})

test.each([
  '',
  'sk-mm-',
  "' OR 1=1 --",
  `sk-mm-${'0'.repeat(16)}-${'\0'.repeat(43)}`,
  `sk-mm-${'0'.repeat(16)}-${"'".repeat(43)}`,
  `sk-mm-${'G'.repeat(16)}-${'a'.repeat(43)}`,
  `${newSecret().secret}\n`,
  ` ${newSecret().secret}`,
  'x'.repeat(2 ** 20),
])('%.80j is none of ours', (text) => {
  expect(publicIdOf(text)).toBeUndefined()
})
