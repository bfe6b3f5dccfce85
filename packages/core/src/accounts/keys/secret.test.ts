import { expect, test } from 'vitest'
import { createSecret, matchesHash, parsePublicId } from './secret.ts'

test('a secret contains its public id and matches only its hash', () => {
  const [one, other] = [createSecret(), createSecret()]

  expect(one.secret).toMatch(/^sk-mm-[\da-f]{16}-[\w-]{43}$/)
  expect(parsePublicId(one.secret)).toBe(one.publicId)
  expect(matchesHash(one.secret, one.hash)).toBe(true)
  expect(matchesHash(other.secret, one.hash)).toBe(false)
})

test('hash and hint do not reveal the secret', () => {
  const { secret, hash, hint, publicId } = createSecret()
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
  `${createSecret().secret}\n`,
  ` ${createSecret().secret}`,
  'x'.repeat(2 ** 20),
])('%.80j is not a secret', (text) => {
  expect(parsePublicId(text)).toBeUndefined()
})
