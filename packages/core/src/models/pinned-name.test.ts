import { expect, test } from 'vitest'
import { parsePinnedName, withoutDigest } from './pinned-name.ts'

const hex = 'aB'.repeat(32)

test.each([
  [`tiny@sha256:${hex}`, 'tiny'],
  [`tiny:8b@sha256:${hex}`, 'tiny:8b'],
  [` hf.co/team/tiny:Q4@SHA256:${hex} `, 'hf.co/team/tiny:Q4'],
])('%s means one version of %s', (text, name) => {
  expect(parsePinnedName(text)).toEqual({ name, digest: hex.toLowerCase() })
  expect(withoutDigest(text).trim()).toBe(name)
})

test.each(['tiny', 'tiny:8b', `sha256:${hex}`, `@sha256:${hex}`, 'a@b', `tiny@sha512:${hex}`, ''])(
  '%j has no digest',
  (text) => {
    expect(parsePinnedName(text)).toBeUndefined()
    expect(withoutDigest(text)).toBe(text)
  },
)

test.each(['x@sha256:abc', 'x@sha256:', `x@sha256:${hex}0`, `x@sha256:${'g'.repeat(64)}`])(
  '%s is no valid name',
  (text) => {
    expect(() => parsePinnedName(text)).toThrow(
      expect.objectContaining({ code: 'invalid_request', message: 'invalid model name' }),
    )
    expect(withoutDigest(text)).toBe(text)
  },
)

test('a text of several megabytes has no digest', () => {
  const text = `${'x'.repeat(5_000_000)}@sha256:abc`

  expect(parsePinnedName(text)).toBeUndefined()
  expect(withoutDigest(text)).toBe(text)
})
