/**
 * Secrets of keys: `sk-mm-<public id>-<43 characters>`. The public id finds the row of the secret and is not
 * confidential. The database stores only a SHA-256 hash of the whole secret. A slow hash is unnecessary,
 * because 256 random bits cannot be guessed.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'

export interface NewSecret {
  /** Shown to the user only once. */
  readonly secret: string
  readonly publicId: string
  readonly hash: string
  /** Beginning and end of the secret, so that people recognise it. */
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

/** Public id of a secret. Undefined for any other string. */
export const parsePublicId = (text: string): string | undefined =>
  text.length === secretLength ? /^sk-mm-([\da-f]{16})-[\w-]{43}$/.exec(text)?.[1] : undefined

const secretLength = 'sk-mm-'.length + 16 + '-'.length + 43

/** Compares in constant time. */
export const matchesHash = (secret: string, hash: string): boolean =>
  timingSafeEqual(digestOf(secret), Buffer.from(hash, 'base64url'))

const digestOf = (secret: string): Buffer => createHash('sha256').update(secret).digest()
