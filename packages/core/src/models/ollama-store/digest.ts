/** The one place where a digest is made of text, so that no other text ever becomes part of a path. */
import { createHash } from 'node:crypto'
import { invalidRequest } from '../../errors.ts'

/** `sha256:` and 64 hexadecimal digits in lower case. */
export type Digest = string & { readonly [brand]: true }
declare const brand: unique symbol

const pattern = /^sha256[:-]([0-9a-f]{64})$/i

/** Nothing where the text is none. A `-` may stand for the colon, as in the names of files. */
export function parseDigest(text: string): Digest | undefined {
  const digits = pattern.exec(text)?.[1]
  return digits === undefined ? undefined : digestOfHex(digits)
}

/** Throws `invalid_request`. */
export function toDigest(text: string): Digest {
  const digest = parseDigest(text)
  if (digest) return digest
  throw invalidRequest('invalid digest format', { param: 'digest' })
}

export const digestOf = (bytes: string | Uint8Array): Digest =>
  digestOfHex(createHash('sha256').update(bytes).digest('hex'))

/** @param hex 64 digits, as a hash gives them */
export const digestOfHex = (hex: string): Digest => `sha256:${hex.toLowerCase()}` as Digest

/** Its 64 digits alone, as clients see them. */
export const hexOf = (digest: Digest): string => digest.slice('sha256:'.length)

/** The name of the file in `blobs/`. */
export const blobName = (digest: Digest): string => `sha256-${hexOf(digest)}`
