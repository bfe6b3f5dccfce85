/** Names with a digest, such as `tiny@sha256:…`, which mean one version of a model. */
import { invalidRequest } from '../errors.ts'

export interface PinnedName {
  readonly name: string
  /** 64 hexadecimal digits in lower case. */
  readonly digest: string
}

/** Limit in characters, longer than any name with a digest. Clients can send names of several megabytes. */
const maxLength = 1_100

/** Returns `undefined` for a name without a digest. Throws `invalid_request` for a wrong digest. */
export function parsePinnedName(text: string): PinnedName | undefined {
  if (text.length > maxLength) return undefined
  const [, name, digits = ''] = /^([^@]+)@sha256:(.*)$/is.exec(text.trim()) ?? []
  if (name === undefined) return undefined
  if (/^[0-9a-f]{64}$/i.test(digits)) return { name, digest: digits.toLowerCase() }
  throw invalidRequest('invalid model name', { param: 'model' })
}

/** Returns other texts unchanged. */
export const withoutDigest = (text: string): string =>
  text.length > maxLength ? text : text.replace(/^([^@]+)@sha256:[0-9a-f]{64}\s*$/i, '$1')
