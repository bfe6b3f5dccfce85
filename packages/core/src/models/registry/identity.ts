/**
 * Signs requests for registry tokens with the key pair that Ollama created for this user. Users register the
 * public key with their account. Signatures follow Ollama's `auth/auth.go`, and the key format follows
 * OpenSSH's `PROTOCOL.key`.
 */
import { createPrivateKey, type KeyObject, randomBytes, sign } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { LlmError } from '../../errors.ts'

export interface RegistryIdentity {
  /** Path of an Ed25519 key in `ssh-keygen` format. Without this file, requests are not signed. */
  readonly keyFile?: string | undefined
}

/** Base64 of the hexadecimal SHA-256 of an empty body. */
const emptyBody = 'ZTNiMGM0NDI5OGZjMWMxNDlhZmJmNGM4OTk2ZmI5MjQyN2FlNDFlNDY0OWI5MzRjYTQ5NTk5MWI3ODUyYjg1NQ=='

/** Signs the URL of a token request. Throws an `LlmError` `upstream` if the key cannot be parsed. */
export async function signedUrl(
  url: URL,
  { keyFile }: RegistryIdentity,
): Promise<{ readonly url: URL; readonly authorization?: string }> {
  const text = keyFile && (await readFile(keyFile, 'utf8').catch(() => undefined))
  if (!text) return { url }
  const { publicKey, privateKey } = parseKey(text)
  const signed = new URL(url)
  signed.searchParams.set('nonce', randomBytes(16).toString('base64url'))
  signed.searchParams.set('ts', String(Math.floor(Date.now() / 1_000)))
  signed.searchParams.sort()
  const signature = sign(null, Buffer.from(`GET,${signed.href},${emptyBody}`), privateKey)
  return { url: signed, authorization: `${publicKey.toString('base64')}:${signature.toString('base64')}` }
}

/** Parses an OpenSSH key, since Node cannot. */
function parseKey(text: string): { readonly publicKey: Buffer; readonly privateKey: KeyObject } {
  try {
    const [, base64 = ''] =
      /^-----BEGIN OPENSSH PRIVATE KEY-----([\sA-Za-z0-9+/=]+)-----END OPENSSH PRIVATE KEY-----\s*$/.exec(
        text,
      ) ?? []
    const file = new SshFieldReader(Buffer.from(base64, 'base64'))
    file.expectText('openssh-key-v1\0')
    if (file.readField().toString() !== 'none') throw new Error('it is encrypted')
    // Skips KDF name, KDF options and the number of keys.
    file.readField()
    file.readField()
    file.skip(4)
    const publicKey = file.readField()
    const secret = new SshFieldReader(file.readField())
    secret.skip(8)
    if (secret.readField().toString() !== 'ssh-ed25519') throw new Error('it is of another kind')
    const [x, keyPair] = [secret.readField(), secret.readField()]
    const jwk = {
      kty: 'OKP',
      crv: 'Ed25519',
      x: x.toString('base64url'),
      d: keyPair.subarray(0, 32).toString('base64url'),
    }
    return { publicKey, privateKey: createPrivateKey({ key: jwk, format: 'jwk' }) }
  } catch (cause) {
    throw new LlmError('upstream', 'the key for registries cannot be read', {}, { cause })
  }
}

/** Reads length-prefixed fields. */
class SshFieldReader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  expectText(text: string): void {
    if (this.#take(text.length).toString('latin1') !== text) throw new Error(`it does not begin with ${text}`)
  }

  skip(bytes: number): void {
    this.#take(bytes)
  }

  readField(): Buffer {
    return this.#take(this.#take(4).readUInt32BE())
  }

  #take(bytes: number): Buffer {
    const start = this.#at
    this.#at += bytes
    if (this.#at > this.#bytes.length) throw new Error('it is cut short')
    return this.#bytes.subarray(start, this.#at)
  }
}
