/**
 * SHA-256 digests. Only this file converts text to a `Digest`, so that no unchecked text becomes part of a
 * path.
 */
import { createHash } from 'node:crypto'
import { invalidRequest } from '../../errors.ts'

/** `sha256:` and 64 lower-case hexadecimal digits. */
export type Digest = string & { readonly [brand]: true }
declare const brand: unique symbol

const pattern = /^sha256[:-]([0-9a-f]{64})$/i

/** Returns `undefined` for text that is not a digest. Accepts `-` instead of the colon, as in file names. */
export function parseDigest(text: string): Digest | undefined {
  const digits = pattern.exec(text)?.[1]
  return digits === undefined ? undefined : digestOfHex(digits)
}

/** Throws `invalid_request` for text that is not a digest. */
export function toDigest(text: string): Digest {
  const digest = parseDigest(text)
  if (digest) return digest
  throw invalidRequest('invalid digest format', { param: 'digest' })
}

export const digestOf = (bytes: string | Uint8Array): Digest =>
  digestOfHex(createHash('sha256').update(bytes).digest('hex'))

/** @param hex 64 hexadecimal digits */
export const digestOfHex = (hex: string): Digest => `sha256:${hex.toLowerCase()}` as Digest

/** The 64 digits without `sha256:`, as clients see them. */
export const hexOf = (digest: Digest): string => digest.slice('sha256:'.length)

/** File name of a blob in `blobs/`. */
export const blobName = (digest: Digest): string => `sha256-${hexOf(digest)}`
