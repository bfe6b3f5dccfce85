/**
 * A small model registry in the test process. It responds like Docker's registry to the requests of pulls and
 * pushes. It generates large blobs while it sends them, and records all requests. A test can intercept
 * requests to simulate faults.
 */
import { createCipheriv, createHash, randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Listening, listen } from './listen.ts'

export interface SeenRequest {
  readonly method: string
  /** Includes the query. */
  readonly path: string
  readonly headers: IncomingMessage['headers']
}

export interface MadeBlob {
  readonly digest: string
  readonly sizeBytes: number
  /** @param end position after the last byte */
  bytes(start: number, end: number): Iterable<Buffer>
}

/** Handles a request. If it returns or resolves to `false`, the registry responds as usual. */
export type Interceptor = (request: IncomingMessage, response: ServerResponse) => unknown

const manifestType = 'application/vnd.docker.distribution.manifest.v2+json'

export class SmallRegistry {
  readonly requests: SeenRequest[] = []
  readonly #blobs = new Map<string, MadeBlob>()
  readonly #manifests = new Map<string, Buffer>()
  readonly #uploads = new Map<string, Buffer[]>()
  readonly #interceptors: { readonly what: RegExp; readonly how: Interceptor }[] = []
  #listening!: Listening

  static async start(): Promise<SmallRegistry> {
    const registry = new SmallRegistry()
    registry.#listening = await listen((request, response) => {
      registry.#answer(request, response).catch(() => response.destroy())
    })
    return registry
  }

  get url(): string {
    return this.#listening.url
  }

  /** Host and port, as they appear in model names. */
  get host(): string {
    return new URL(this.url).host
  }

  close(): Promise<void> {
    return this.#listening.close()
  }

  addBlob(blob: MadeBlob): void {
    this.#blobs.set(blob.digest, blob)
  }

  /** @param path for example `library/tiny/latest` */
  addManifest(path: string, bytes: Buffer): void {
    this.#manifests.set(path, bytes)
  }

  /** Intercepts later requests whose `METHOD /path` matches. The newest matching interceptor runs first. */
  intercept(what: RegExp, how: Interceptor): void {
    this.#interceptors.unshift({ what, how })
  }

  /** Removes all interceptors and the record of requests. */
  forget(): void {
    this.#interceptors.length = 0
    this.requests.length = 0
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = request
    this.requests.push({ method, path: url, headers })
    for (const { what, how } of this.#interceptors)
      if (what.test(`${method} ${url}`) && (await how(request, response)) !== false) return
    const { pathname, searchParams } = new URL(url, this.url)
    const [, repository = '', kind = '', reference = ''] =
      /^\/v2\/(.+)\/(manifests|blobs|tags)\/(.*)$/.exec(pathname) ?? []
    if (pathname === '/v2/') return void response.writeHead(200).end('{}')
    if (kind === 'manifests') return this.#manifest(repository, reference, request, response)
    if (kind === 'tags') return this.#tags(repository, response)
    if (kind === 'blobs' && reference.startsWith('uploads/'))
      return this.#upload(repository, reference.slice('uploads/'.length), searchParams, request, response)
    if (kind === 'blobs') return this.#blob(reference, request, response)
    return void response.writeHead(404).end()
  }

  async #manifest(
    repository: string,
    reference: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const key = `${repository}/${reference}`
    if (request.method === 'PUT') {
      const bytes = await bodyOf(request)
      const { layers, config } = JSON.parse(bytes.toString())
      for (const { digest } of [...layers, config])
        if (!this.#blobs.has(digest))
          return refuse(response, 400, 'MANIFEST_BLOB_UNKNOWN', 'blob unknown to registry')
      const digest = digestOf(bytes)
      this.#manifests.set(key, bytes)
      this.#manifests.set(`${repository}/${digest}`, bytes)
      return void response
        .writeHead(201, {
          'docker-content-digest': digest,
          location: `${this.url}/v2/${repository}/manifests/${digest}`,
        })
        .end()
    }
    const bytes = this.#manifests.get(key)
    if (!bytes) return refuse(response, 404, 'MANIFEST_UNKNOWN', 'manifest unknown')
    const head = {
      'content-type': manifestType,
      'content-length': bytes.length,
      'docker-content-digest': digestOf(bytes),
    }
    response.writeHead(200, head).end(request.method === 'HEAD' ? undefined : bytes)
  }

  #tags(repository: string, response: ServerResponse): void {
    const tags = [...this.#manifests.keys()]
      .filter((key) => key.startsWith(`${repository}/`) && !key.includes('sha256:'))
      .map((key) => key.slice(repository.length + 1))
    response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' })
    response.end(`${JSON.stringify({ name: repository, tags })}\n`)
  }

  async #blob(digest: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === 'DELETE')
      return refuse(response, 405, 'UNSUPPORTED', 'The operation is unsupported.')
    const blob = this.#blobs.get(digest)
    if (!blob) return refuse(response, 404, 'BLOB_UNKNOWN', 'blob unknown to registry')
    const head = {
      'content-type': 'application/octet-stream',
      'accept-ranges': 'bytes',
      'docker-content-digest': digest,
    }
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '')
    const [start, end] = range
      ? [Number(range[1]), range[2] ? Math.min(Number(range[2]) + 1, blob.sizeBytes) : blob.sizeBytes]
      : [0, blob.sizeBytes]
    if (range && start >= blob.sizeBytes)
      return void response.writeHead(416, { 'content-range': `bytes */${blob.sizeBytes}` }).end()
    response.writeHead(range ? 206 : 200, {
      ...head,
      'content-length': end - start,
      ...(range && { 'content-range': `bytes ${start}-${end - 1}/${blob.sizeBytes}` }),
    })
    if (request.method === 'HEAD') return void response.end()
    await pipeline(Readable.from(blob.bytes(start, end)), response).catch(() => {})
  }

  async #upload(
    repository: string,
    id: string,
    query: URLSearchParams,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const place = (upload: string, status: number, range?: string): void => {
      const location = `${this.url}/v2/${repository}/blobs/uploads/${upload}?_state=${randomUUID()}`
      response
        .writeHead(status, {
          location,
          ...(range && { range }),
          'docker-upload-uuid': upload,
          'content-length': 0,
        })
        .end()
    }
    const created = (digest: string): void => {
      const location = `${this.url}/v2/${repository}/blobs/${digest}`
      response.writeHead(201, { location, 'docker-content-digest': digest, 'content-length': 0 }).end()
    }
    if (request.method === 'POST') {
      const mounted = query.get('mount')
      if (mounted && query.get('from') && this.#blobs.has(mounted)) return created(mounted)
      const upload = randomUUID()
      this.#uploads.set(upload, [])
      return place(upload, 202, '0-0')
    }
    const chunks = this.#uploads.get(id)
    if (!chunks) return refuse(response, 404, 'BLOB_UPLOAD_UNKNOWN', 'blob upload unknown to registry')
    const length = (): number => chunks.reduce((sum, chunk) => sum + chunk.length, 0)
    const range = (): string => `0-${Math.max(0, length() - 1)}`
    if (request.method === 'GET') return place(id, 204, range())
    if (request.method === 'PATCH') {
      const first = /^(\d+)-\d+$/.exec(request.headers['content-range'] ?? '')?.[1]
      if (first !== undefined && Number(first) !== length()) return void response.writeHead(416).end()
      // The bytes received before a disconnect are kept.
      for await (const chunk of request) chunks.push(chunk)
      return place(id, 202, range())
    }
    chunks.push(await bodyOf(request))
    const bytes = Buffer.concat(chunks)
    const digest = query.get('digest') ?? ''
    if (digestOf(bytes) !== digest)
      return refuse(response, 400, 'DIGEST_INVALID', 'provided digest did not match uploaded content')
    this.#uploads.delete(id)
    this.addBlob(blobOf(bytes))
    created(digest)
  }
}

function refuse(response: ServerResponse, status: number, code: string, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8' })
  response.end(`${JSON.stringify({ errors: [{ code, message }] })}\n`)
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks)
}

export const digestOf = (bytes: string | Uint8Array): string =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`

export function blobOf(content: string | Uint8Array): MadeBlob {
  const bytes = Buffer.from(content)
  return {
    digest: digestOf(bytes),
    sizeBytes: bytes.length,
    bytes: (start, end) => [bytes.subarray(start, end)],
  }
}

const pieceBytes = 256 * 1024

/**
 * A blob of pseudorandom bytes, repeatable by its seed. The bytes are generated on each read and never
 * stored.
 */
export function noiseBlob(seed: string, sizeBytes: number): MadeBlob {
  const key = createHash('sha256').update(seed).digest()
  function* bytes(start: number, end: number): Iterable<Buffer> {
    for (let at = start - (start % 16); at < end; at += pieceBytes) {
      const counter = Buffer.alloc(16)
      counter.writeBigUInt64BE(BigInt(at / 16), 8)
      const piece = createCipheriv('aes-256-ctr', key, counter).update(
        Buffer.alloc(Math.min(pieceBytes, end - at)),
      )
      yield piece.subarray(Math.max(0, start - at))
    }
  }
  const hash = createHash('sha256')
  for (const piece of bytes(0, sizeBytes)) hash.update(piece)
  return { digest: `sha256:${hash.digest('hex')}`, sizeBytes, bytes }
}
