/** What one registry is asked of one model. Shape: Docker Registry HTTP API V2, and Ollama `server/auth.go`. */
import type { Readable } from 'node:stream'
import { LlmError } from '../../errors.ts'
import type { Digest } from '../ollama-store/digest.ts'
import { manifestType } from '../ollama-store/manifest.ts'
import { maxManifestBytes } from '../ollama-store/manifests.ts'
import type { ModelName } from '../ollama-store/name.ts'
import { withDeadline } from './deadline.ts'
import { type Answer, discard, type GuardedFetch, type GuardedRequest, readSmall } from './guarded-fetch.ts'
import { type Identity, signedUrl } from './identity.ts'

const maxTokenBytes = 64 * 1024
/** Of an error that is passed on. */
const maxErrorBytes = 4 * 1024
/** The first and the last byte. */
export type ByteRange = readonly [first: number, last: number]

/** Where the next part of an upload goes. */
export interface UploadPlace {
  readonly url: URL
  /** How many bytes are there already. */
  readonly offset: number
}

export class Registry {
  readonly #guard: GuardedFetch
  readonly #base: URL
  readonly #name: ModelName
  readonly #insecure: boolean
  readonly #identity: Identity
  /** For an answer that is small, from the first byte of the request to its last. */
  readonly #smallMs: number
  /** Of this pull or push; several requests wait for one. */
  #token: Promise<string> | undefined

  constructor(guard: GuardedFetch, name: ModelName, options: RegistryAccess) {
    this.#guard = guard
    this.#name = name
    this.#insecure = options.insecure
    this.#identity = options.identity
    this.#smallMs = options.smallMs
    this.#base = new URL(`${options.insecure ? 'http' : 'https'}://${name.host}`)
  }

  /** Its bytes. Throws `not_found`. */
  async manifest(signal: AbortSignal): Promise<Buffer> {
    const url = this.#url(`manifests/${this.#name.tag}`)
    return this.#small({ url, headers: { accept: manifestType }, signal }, async (answer) => {
      if (answer.status === 404) throw new LlmError('not_found', 'file does not exist')
      await expectStatus(answer, 200)
      return readSmall(answer, maxManifestBytes)
    })
  }

  async putManifest(bytes: Uint8Array, signal: AbortSignal): Promise<void> {
    const url = this.#url(`manifests/${this.#name.tag}`)
    const headers = { 'content-type': manifestType }
    await this.#small({ method: 'PUT', url, headers, body: () => bytes, signal }, (answer) =>
      expectStatus(answer, 200, 201, 202),
    )
  }

  async hasBlob(digest: Digest, signal: AbortSignal): Promise<boolean> {
    return this.#small({ method: 'HEAD', url: this.#url(`blobs/${digest}`), signal }, async (answer) => {
      if (answer.status === 404) return false
      await expectStatus(answer, 200)
      return true
    })
  }

  /** From wherever the registry sends us. Nothing but the token's errors is thrown for a status. */
  async blob(digest: Digest, range: ByteRange, signal: AbortSignal): Promise<Answer> {
    const headers = { range: `bytes=${range[0]}-${range[1]}` }
    return this.#send({ url: this.#url(`blobs/${digest}`), headers, signal })
  }

  /** Nothing where the registry had the blob elsewhere, and took it from there. */
  async startUpload(
    digest: Digest,
    from: string | undefined,
    signal: AbortSignal,
  ): Promise<UploadPlace | undefined> {
    const url = this.#url('blobs/uploads/')
    if (from) {
      url.searchParams.set('mount', digest)
      url.searchParams.set('from', from)
    }
    return this.#small({ method: 'POST', url, signal }, async (answer) => {
      if (answer.status === 201) return undefined
      await expectStatus(answer, 202)
      return { url: nextUrl(answer), offset: 0 }
    })
  }

  /** Bytes from the offset on, as many as `size` says. */
  async uploadPart(
    { url, offset }: UploadPlace,
    size: number,
    body: () => Readable,
    signal: AbortSignal,
  ): Promise<UploadPlace> {
    const headers = {
      'content-type': 'application/octet-stream',
      'content-length': String(size),
      'content-range': `${offset}-${offset + size - 1}`,
    }
    const answer = await this.#send({ method: 'PATCH', url, headers, body, signal })
    await expectStatus(answer, 202)
    await discard(answer)
    return { url: nextUrl(answer), offset: offset + size }
  }

  /** How far an upload has come that was broken off. Nothing where it is gone. */
  async uploadPlace({ url }: UploadPlace, signal: AbortSignal): Promise<UploadPlace | undefined> {
    return this.#small({ url, signal }, async (answer) => {
      if (answer.status === 404) return undefined
      await expectStatus(answer, 204, 202, 200)
      const last = Number(/^(?:bytes=)?0-(\d+)$/.exec(answer.header('range') ?? '')?.[1])
      // `0-0` is said of nothing, too.
      return { url: nextUrl(answer, url), offset: last > 0 ? last + 1 : 0 }
    })
  }

  async finishUpload({ url }: UploadPlace, digest: Digest, signal: AbortSignal): Promise<void> {
    const whole = new URL(url)
    whole.searchParams.set('digest', digest)
    // It may have to read gigabytes first.
    const answer = await this.#send({ method: 'PUT', url: whole, headers: { 'content-length': '0' }, signal })
    await expectStatus(answer, 200, 201, 204)
    await discard(answer)
  }

  #url(path: string): URL {
    return new URL(`/v2/${this.#name.namespace}/${this.#name.model}/${path}`, this.#base)
  }

  #small<T>(request: RegistryRequest, read: (answer: Answer) => Promise<T>): Promise<T> {
    const work = async (signal: AbortSignal): Promise<T> => {
      const answer = await this.#send({ ...request, signal })
      try {
        return await read(answer)
      } finally {
        await discard(answer)
      }
    }
    return withDeadline(work, this.#smallMs, this.#late(request.url), request.signal)
  }

  #late(url: URL): LlmError {
    return upstream(`${url.origin} did not answer within ${this.#smallMs / 1_000} s`)
  }

  /** A second time with a token where one is asked for. */
  async #send(request: RegistryRequest): Promise<Answer> {
    const used = this.#token
    const answer = await this.#sendWith(request, await used)
    if (answer.status !== 401) return answer
    await discard(answer)
    // Of several requests that are refused at once, one gets a token for all.
    if (this.#token === used) this.#token = this.#newToken(answer.header('www-authenticate') ?? '')
    const again = await this.#sendWith(request, await this.#token)
    if (again.status !== 401) return again
    await discard(again)
    throw denied('unauthorized: access denied')
  }

  async #sendWith(request: RegistryRequest, token: string | undefined): Promise<Answer> {
    const { url, body, ...rest } = request
    const content = body?.()
    return this.#guard.fetch(url, {
      ...rest,
      ...(content && { body: content }),
      insecure: this.#insecure,
      credentials: token ? { origin: this.#base.origin, authorization: `Bearer ${token}` } : undefined,
    })
  }

  #newToken(challenge: string): Promise<string> {
    const token = this.#askForToken(challenge)
    token.catch(() => {
      if (this.#token === token) this.#token = undefined
    })
    return token
  }

  async #askForToken(challenge: string): Promise<string> {
    const { realm, service, scope } = fieldsOf(challenge)
    if (!realm || !URL.canParse(realm)) throw denied('unauthorized: access denied')
    const url = new URL(realm)
    // What is asked there is signed, and what comes from there is trusted.
    if (url.origin !== this.#base.origin)
      throw denied(`realm host "${url.host}" does not match original host "${this.#base.host}"`)
    for (const one of scope?.split(' ') ?? []) url.searchParams.append('scope', one)
    if (service) url.searchParams.set('service', service)
    const signed = await signedUrl(url, this.#identity)

    const ask = async (signal: AbortSignal): Promise<string> => {
      const { authorization } = signed
      const credentials = authorization ? { origin: this.#base.origin, authorization } : undefined
      const answer = await this.#guard.fetch(signed.url, { insecure: this.#insecure, credentials, signal })
      await expectStatus(answer, 200)
      return tokenIn(await readSmall(answer, maxTokenBytes))
    }
    // Of nobody's signal: several may wait for it.
    return withDeadline(ask, this.#smallMs, this.#late(url))
  }
}

interface RegistryAccess {
  readonly identity: Identity
  /** Over `http`. */
  readonly insecure: boolean
  readonly smallMs: number
}

/** A body is made anew where it has to be sent again. */
interface RegistryRequest extends Omit<GuardedRequest, 'body' | 'credentials' | 'insecure'> {
  readonly url: URL
  readonly body?: () => Readable | Uint8Array
}

/** Asked again, the same would be said. */
const denied = (message: string): LlmError => new LlmError('permission', message)

const upstream = (message: string, options?: ErrorOptions): LlmError =>
  new LlmError('upstream', message, {}, options)

/** Another status is thrown, with the beginning of what the registry says to it. */
export async function expectStatus(answer: Answer, ...expected: readonly number[]): Promise<void> {
  if (expected.includes(answer.status)) return
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of answer.body as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes >= maxErrorBytes) break
  }
  const text = Buffer.concat(chunks).subarray(0, maxErrorBytes).toString()
  throw new StatusError(answer.status, text)
}

/** What a registry said instead of what it was asked for. */
export class StatusError extends LlmError {
  /** The registry's; ours is another one. */
  readonly said: number

  constructor(said: number, body: string) {
    super('upstream', `${said}: ${body}`)
    this.said = said
  }
}

function nextUrl(answer: Answer, otherwise?: URL): URL {
  const location = answer.header('docker-upload-location') ?? answer.header('location')
  if (location && URL.canParse(location, answer.url.href)) return new URL(location, answer.url)
  if (otherwise) return otherwise
  throw upstream('the registry does not say where an upload goes on')
}

/** `Bearer realm="…",service="…",scope="…"` */
const fieldsOf = (challenge: string): Partial<Record<string, string>> =>
  /^bearer /i.test(challenge)
    ? Object.fromEntries([...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]))
    : {}

function tokenIn(body: Buffer): string {
  let token: unknown
  try {
    const { token: one, access_token: other } = JSON.parse(body.toString())
    token = one || other
  } catch {}
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token))
    throw upstream('the registry gave no token that can be used')
  return token
}
