/**
 * Client of a registry for one model. Uses the Docker Registry HTTP API V2, and authenticates like Ollama's
 * `server/auth.go`.
 */
import type { Readable } from 'node:stream'
import { LlmError } from '../../errors.ts'
import type { Digest } from '../ollama-store/digest.ts'
import { manifestMediaType, maxManifestBytes } from '../ollama-store/manifest.ts'
import type { ModelName } from '../ollama-store/name.ts'
import { basicAuthorization, isToken, type RegistryCredentials } from './credentials.ts'
import { withDeadline } from './deadline.ts'
import {
  discard,
  type GuardedFetch,
  type GuardedRequest,
  type GuardedResponse,
  readLimitedBody,
  upstreamError,
} from './guarded-fetch.ts'
import { type RegistryIdentity, signedUrl } from './identity.ts'

const maxTokenBytes = 64 * 1024
/** Maximum length of a registry's error text within our error message. */
const maxErrorBytes = 4 * 1024
/** First and last byte of a range. The range includes both. */
export type ByteRange = readonly [first: number, last: number]

/** An unfinished upload, and where to send its next part. */
export interface UploadSession {
  readonly url: URL
  /** Bytes that the registry has received. */
  readonly offset: number
}

export class Registry {
  readonly #guard: GuardedFetch
  readonly #base: URL
  readonly #name: ModelName
  readonly #insecure: boolean
  readonly #identity: RegistryIdentity
  /** Time limit of a small request, including its response body. */
  readonly #requestTimeoutMs: number
  readonly #findCredentials: RegistryAccess['findCredentials']
  /** Value of the header `authorization` in this pull or push. Concurrent requests share it. */
  #authorization: Promise<string> | undefined

  constructor(guard: GuardedFetch, name: ModelName, options: RegistryAccess) {
    this.#guard = guard
    this.#name = name
    this.#insecure = options.insecure
    this.#identity = options.identity
    this.#findCredentials = options.findCredentials
    this.#requestTimeoutMs = options.requestTimeoutMs
    this.#base = new URL(`${options.insecure ? 'http' : 'https'}://${name.host}`)
  }

  /** Throws `not_found` if the registry does not have the model. */
  async fetchManifest(signal: AbortSignal): Promise<Buffer> {
    const url = this.#url(`manifests/${this.#name.tag}`)
    return this.#sendSmall({ url, headers: { accept: manifestMediaType }, signal }, async (response) => {
      if (response.status === 404) throw new LlmError('not_found', 'file does not exist')
      await expectStatus(response, 200)
      return readLimitedBody(response, maxManifestBytes)
    })
  }

  async putManifest(bytes: Uint8Array, signal: AbortSignal): Promise<void> {
    const url = this.#url(`manifests/${this.#name.tag}`)
    const headers = { 'content-type': manifestMediaType }
    await this.#sendSmall({ method: 'PUT', url, headers, body: () => bytes, signal }, (response) =>
      expectStatus(response, 200, 201, 202),
    )
  }

  async hasBlob(digest: Digest, signal: AbortSignal): Promise<boolean> {
    return this.#sendSmall(
      { method: 'HEAD', url: this.#url(`blobs/${digest}`), signal },
      async (response) => {
        if (response.status === 404) return false
        await expectStatus(response, 200)
        return true
      },
    )
  }

  /**
   * Follows redirects. Returns a response with any status, but throws `permission` if the token is rejected.
   */
  async fetchBlob(digest: Digest, range: ByteRange, signal: AbortSignal): Promise<GuardedResponse> {
    const headers = { range: `bytes=${range[0]}-${range[1]}` }
    return this.#send({ url: this.#url(`blobs/${digest}`), headers, signal })
  }

  /**
   * Returns `undefined` if the registry mounted the blob from the repository `from`, so that no upload is
   * needed.
   */
  async startUpload(
    digest: Digest,
    from: string | undefined,
    signal: AbortSignal,
  ): Promise<UploadSession | undefined> {
    const url = this.#url('blobs/uploads/')
    if (from) {
      url.searchParams.set('mount', digest)
      url.searchParams.set('from', from)
    }
    return this.#sendSmall({ method: 'POST', url, signal }, async (response) => {
      if (response.status === 201) return undefined
      await expectStatus(response, 202)
      return { url: nextUrl(response), offset: 0 }
    })
  }

  /** Uploads `size` bytes at the offset. Returns the session for the next part. */
  async uploadPart(
    { url, offset }: UploadSession,
    size: number,
    body: () => Readable,
    signal: AbortSignal,
  ): Promise<UploadSession> {
    const headers = {
      'content-type': 'application/octet-stream',
      'content-length': String(size),
      'content-range': `${offset}-${offset + size - 1}`,
    }
    const response = await this.#send({ method: 'PATCH', url, headers, body, signal })
    await expectStatus(response, 202)
    await discard(response)
    return { url: nextUrl(response), offset: offset + size }
  }

  /**
   * Fetches the offset of an interrupted upload. Returns `undefined` if the registry has dropped the upload.
   */
  async fetchUploadSession({ url }: UploadSession, signal: AbortSignal): Promise<UploadSession | undefined> {
    return this.#sendSmall({ url, signal }, async (response) => {
      if (response.status === 404) return undefined
      await expectStatus(response, 204, 202, 200)
      const last = Number(/^(?:bytes=)?0-(\d+)$/.exec(response.header('range') ?? '')?.[1])
      // `0-0` also means that the registry has received nothing.
      return { url: nextUrl(response, url), offset: last > 0 ? last + 1 : 0 }
    })
  }

  async finishUpload({ url }: UploadSession, digest: Digest, signal: AbortSignal): Promise<void> {
    const finishUrl = new URL(url)
    finishUrl.searchParams.set('digest', digest)
    // This request has no deadline, since the registry may hash gigabytes before it responds.
    const response = await this.#send({
      method: 'PUT',
      url: finishUrl,
      headers: { 'content-length': '0' },
      signal,
    })
    await expectStatus(response, 200, 201, 204)
    await discard(response)
  }

  #url(path: string): URL {
    return new URL(`/v2/${this.#name.namespace}/${this.#name.model}/${path}`, this.#base)
  }

  #sendSmall<T>(request: RegistryRequest, read: (response: GuardedResponse) => Promise<T>): Promise<T> {
    const work = async (signal: AbortSignal): Promise<T> => {
      const response = await this.#send({ ...request, signal })
      try {
        return await read(response)
      } finally {
        await discard(response)
      }
    }
    return withDeadline(work, this.#requestTimeoutMs, this.#timeoutError(request.url), request.signal)
  }

  #timeoutError(url: URL): LlmError {
    return upstreamError(
      `${url.origin} did not answer within ${this.#requestTimeoutMs / 1_000} s${this.#guard.describeProxy(url)}`,
    )
  }

  /** Sends a request. If the response is a 401, repeats the request with a new token, or with the password. */
  async #send(request: RegistryRequest): Promise<GuardedResponse> {
    const used = this.#authorization
    const response = await this.#sendWith(request, await used)
    if (response.status !== 401) return response
    await discard(response)
    // Concurrent requests that receive a 401 share one new token.
    if (this.#authorization === used)
      this.#authorization = this.#authorize(response.header('www-authenticate') ?? '')
    const retried = await this.#sendWith(request, await this.#authorization)
    if (retried.status !== 401) return retried
    await discard(retried)
    throw accessDenied('unauthorized: access denied')
  }

  async #sendWith(request: RegistryRequest, authorization: string | undefined): Promise<GuardedResponse> {
    const { url, body, ...rest } = request
    const content = body?.()
    return this.#guard.fetch(url, {
      ...rest,
      ...(content && { body: content }),
      insecure: this.#insecure,
      credentials: authorization ? { origin: this.#base.origin, authorization } : undefined,
    })
  }

  #authorize(challenge: string): Promise<string> {
    const authorization = this.#answerChallenge(challenge)
    authorization.catch(() => {
      if (this.#authorization === authorization) this.#authorization = undefined
    })
    return authorization
  }

  /** Returns the value of the header `authorization` that the challenge asks for. */
  async #answerChallenge(challenge: string): Promise<string> {
    const credentials = await this.#findCredentials(this.#base.origin)
    if (!credentials) await this.#expectNoSecureCredentials()
    if (credentials && 'token' in credentials) return `Bearer ${credentials.token}`
    if (credentials && /^basic\b/i.test(challenge))
      return basicAuthorization(credentials.username, credentials.password)
    return `Bearer ${await this.#requestToken(challenge, credentials)}`
  }

  /** Throws `permission` if the app has credentials for https only, since http would show them to the network. */
  async #expectNoSecureCredentials(): Promise<void> {
    const { origin } = new URL(`https://${this.#base.host}`)
    if (!this.#insecure || !(await this.#findCredentials(origin))) return
    throw accessDenied(
      `unauthorized: the credentials of ${this.#base.host} are for https. To send them over http, name ${this.#base.origin} in their place`,
    )
  }

  /** @param login sent to the token server instead of a signature */
  async #requestToken(challenge: string, login: PasswordLogin | undefined): Promise<string> {
    const { realm, service, scope } = parseChallenge(challenge)
    if (!realm || !URL.canParse(realm)) throw accessDenied('unauthorized: access denied')
    const url = new URL(realm)
    // The realm is the URL that issues tokens. It receives our signature or password, so its host must be the
    // registry, or the host that the app names.
    if (url.origin !== this.#base.origin && url.origin !== login?.realm)
      throw accessDenied(`realm host "${url.host}" does not match original host "${this.#base.host}"`)
    for (const one of scope?.split(' ') ?? []) url.searchParams.append('scope', one)
    if (service) url.searchParams.set('service', service)
    const signed = login
      ? { url, authorization: basicAuthorization(login.username, login.password) }
      : await signedUrl(url, this.#identity)

    const fetchToken = async (signal: AbortSignal): Promise<string> => {
      const { authorization } = signed
      const credentials = authorization ? { origin: url.origin, authorization } : undefined
      const response = await this.#guard.fetch(signed.url, { insecure: this.#insecure, credentials, signal })
      if (login && response.status === 401) {
        await discard(response)
        throw accessDenied('unauthorized: the token server rejects the credentials')
      }
      await expectStatus(response, 200)
      return parseToken(await readLimitedBody(response, maxTokenBytes))
    }
    // The token request ignores the signals of other requests, since several may wait for the same token.
    return withDeadline(fetchToken, this.#requestTimeoutMs, this.#timeoutError(url))
  }
}

type PasswordLogin = Exclude<RegistryCredentials, { readonly token: string }>

interface RegistryAccess {
  /** Finds the credentials of an origin. */
  readonly findCredentials: (origin: string) => Promise<RegistryCredentials | undefined>
  readonly identity: RegistryIdentity
  /** Whether to use `http` instead of `https`. */
  readonly insecure: boolean
  readonly requestTimeoutMs: number
}

/** `body` is a function, since a repeated request needs a new stream. */
interface RegistryRequest extends Omit<GuardedRequest, 'body' | 'credentials' | 'insecure'> {
  readonly url: URL
  readonly body?: () => Readable | Uint8Array
}

/** This error is not retried, since the registry would answer the same. */
const accessDenied = (message: string): LlmError => new LlmError('permission', message)

/** Throws a `StatusError` for a status that is not `expected`. The error contains the start of the body. */
export async function expectStatus(response: GuardedResponse, ...expected: readonly number[]): Promise<void> {
  if (expected.includes(response.status)) return
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response.body as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes >= maxErrorBytes) break
  }
  const text = Buffer.concat(chunks).subarray(0, maxErrorBytes).toString()
  throw new StatusError(response.status, text)
}

/** An unexpected HTTP status of a registry. */
export class StatusError extends LlmError {
  /** HTTP status that the registry sent. Our response to the client has another status. */
  readonly registryStatus: number

  constructor(statusCode: number, body: string) {
    super('upstream', `${statusCode}: ${body}`)
    this.registryStatus = statusCode
  }
}

function nextUrl(response: GuardedResponse, fallback?: URL): URL {
  const location = response.header('docker-upload-location') ?? response.header('location')
  if (location && URL.canParse(location, response.url.href)) return new URL(location, response.url)
  if (fallback) return fallback
  throw upstreamError('the registry sent no upload location')
}

/** Parses `Bearer realm="…",service="…",scope="…"`. */
const parseChallenge = (challenge: string): Partial<Record<string, string>> =>
  /^bearer /i.test(challenge)
    ? Object.fromEntries([...challenge.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]))
    : {}

function parseToken(body: Buffer): string {
  let token: unknown
  try {
    const { token: one, access_token: other } = JSON.parse(body.toString())
    token = one || other
  } catch {}
  if (typeof token !== 'string' || !isToken(token)) throw upstreamError('the registry sent no usable token')
  return token
}
