/**
 * Secrets of keys: `sk-mm-<public id>-<43 characters>`. The public id identifies the secret and is not confidential. Only a hash of
 * the whole is stored: plain SHA-256, since 256 random bits cannot be guessed.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

export interface NewSecret {
  /** Shown once. */
  readonly secret: string
  readonly publicId: string
  readonly hash: string
  /** Beginning and end of the secret, for people. */
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

/** Undefined for a string that is not a secret. */
export const parsePublicId = (text: string): string | undefined =>
  text.length === secretLength ? /^sk-mm-([\da-f]{16})-[\w-]{43}$/.exec(text)?.[1] : undefined

const secretLength = 'sk-mm-'.length + 16 + '-'.length + 43

/** Compares in constant time. */
export const matchesHash = (secret: string, hash: string): boolean =>
  timingSafeEqual(digestOf(secret), Buffer.from(hash, 'base64url'))

const digestOf = (secret: string): Buffer => createHash('sha256').update(secret).digest()
