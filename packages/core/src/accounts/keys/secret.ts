/**
 * Secrets of keys: `sk-mm-<public id>-<43 characters>`. The public id says which one it is, and is no secret; of the whole only a
 * hash is kept. It is a plain one, since nobody guesses 256 random bits.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

export interface NewSecret {
  /** Shown once. */
  readonly secret: string
  readonly publicId: string
  readonly hash: string
  /** By which people tell keys apart. */
  readonly hint: string
}

export function createSecret(): NewSecret {
  const publicId = randomBytes(8).toString('hex')
  const secret = `sk-mm-${publicId}-${randomBytes(32).toString('base64url')}`
  return {
    secret,
    publicId,
    hash: digestOf(secret).toString('base64url'),
    hint: `sk-mm-${publicId}-…${secret.slice(-4)}`,
  }
}

/** Nothing for a text that is no secret of ours, of whatever length. */
export const parsePublicId = (text: string): string | undefined =>
  text.length === secretLength ? /^sk-mm-([\da-f]{16})-[\w-]{43}$/.exec(text)?.[1] : undefined

const secretLength = 'sk-mm-'.length + 16 + '-'.length + 43

/** Takes as long for a wrong one as for the right one. */
export const matchesHash = (secret: string, hash: string): boolean =>
  timingSafeEqual(digestOf(secret), Buffer.from(hash, 'base64url'))

const digestOf = (secret: string): Buffer => createHash('sha256').update(secret).digest()
