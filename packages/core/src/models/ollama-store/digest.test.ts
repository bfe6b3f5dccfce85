import fc from 'fast-check'
import { expect, test } from 'vitest'
import { blobName, digestOf, hexOf, parseDigest, toDigest } from './digest.ts'

const hex = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'

test.each([`sha256:${hex}`, `sha256-${hex}`, `SHA256:${hex.toUpperCase()}`])('%j is a digest', (text) => {
  const digest = parseDigest(text)

  expect(digest).toBe(`sha256:${hex}`)
  expect(digest && [hexOf(digest), blobName(digest)]).toEqual([hex, `sha256-${hex}`])
})

test('the digest of bytes is that of their text', () => {
  expect(digestOf('abc')).toBe(`sha256:${hex}`)
  expect(digestOf(Buffer.from('abc'))).toBe(`sha256:${hex}`)
})

test.each([
  ...['', hex, `sha256:${hex}0`, `sha256:${hex.slice(1)}`, `sha256:${hex}\n`, ` sha256:${hex}`, `md5:${hex}`],
  ...[`sha256/${hex}`, `sha256:../../${hex.slice(6)}`, `sha256:${hex.replace('b', 'g')}`],
])('%j is no digest', (text) => {
  expect(parseDigest(text)).toBeUndefined()
  expect(() => toDigest(text)).toThrow('invalid digest format')
})

test('any text is rejected or yields a file name of hexadecimal digits', () => {
  const near = fc
    .tuple(fc.constantFrom('sha256:', 'sha256-', ''), fc.string({ maxLength: 70 }))
    .map((two) => two.join(''))
  fc.assert(
    fc.property(fc.oneof(fc.string(), near, fc.constant(`sha256:${hex}`)), (text) => {
      const digest = parseDigest(text)
      if (digest) expect(blobName(digest)).toMatch(/^sha256-[0-9a-f]{64}$/)
    }),
  )
})
