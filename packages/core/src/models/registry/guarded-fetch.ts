/**
 * Requests to machines that others name: none reaches an address that is not public, unless the app has named its host,
 * none gives its credentials to a second origin, and no answer is larger than who asks expects.
 */
import { lookup as resolveName } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import type { Readable } from 'node:stream'
import type { Agent, Dispatcher } from 'undici'
import { LlmError } from '../../errors.ts'
import { isPublicAddress } from '../../http/public-address.ts'

export interface GuardedRequest {
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH'
  readonly headers?: Readonly<Record<string, string>>
  /** Sent to this origin only, wherever the request is led. */
  readonly credentials?: { readonly origin: string; readonly authorization: string } | undefined
  /** `http` will do, at hosts that the app has named. @default false */
  readonly insecure?: boolean
  readonly body?: Readable | Uint8Array
  readonly signal: AbortSignal
}

export interface GuardedResponse {
  readonly status: number
  header(name: string): string | undefined
  /** Has to be read or destroyed. */
  readonly body: Dispatcher.ResponseData['body']
  /** Where it came from in the end. */
  readonly url: URL
}

export interface GuardOptions {
  /** `host` or `host:port`: these may lie at private addresses. */
  readonly privateHosts: readonly string[]
  /** How names become addresses. @default the system's way */
  readonly lookup?: LookupFunction
}

const maxRedirects = 10
const redirectStatuses = [301, 302, 303, 307, 308]
/** Of a body that says nothing: what is longer costs more than a new connection. */
const maxDiscardedBytes = 16 * 1024
/** Before the first byte of a body, and between two. Who waits shorter has a signal. */
const idleTimeoutMs = 300_000
const connectTimeoutMs = 30_000
const maxHeaderBytes = 16 * 1024

export class GuardedFetch {
  readonly #privateHosts: ReadonlySet<string>
  readonly #lookup: LookupFunction
  #agents: Promise<Agents> | undefined

  constructor({ privateHosts, lookup = resolveName as LookupFunction }: GuardOptions) {
    this.#privateHosts = new Set(privateHosts.flatMap(addDefaultPorts))
    this.#lookup = lookup
  }

  /** @param host as it stands in an address, with its port where that is not the protocol's */
  isPrivateHost(host: string): boolean {
    return addDefaultPorts(host).some((one) => this.#privateHosts.has(one))
  }

  /**
   * Follows redirects of `GET` and `HEAD`, each looked at like the first; none leads to a host that the app has named but
   * from that host itself. Throws `permission` for an address that may not be
   * asked, and `upstream` for a server that cannot be, or that sends what was not asked for.
   */
  async fetch(url: URL, request: GuardedRequest): Promise<GuardedResponse> {
    const method = request.method ?? 'GET'
    const { hostname } = url
    for (let hops = 0; hops <= maxRedirects; hops++) {
      const canBePrivate = url.hostname === hostname
      const response = await this.#fetchOnce(url, method, request, canBePrivate)
      const location = response.header('location')
      if (!redirectStatuses.includes(response.status) || !location || (method !== 'GET' && method !== 'HEAD'))
        return response
      await discard(response)
      url = resolveLocation(location, url)
    }
    throw upstreamError(`${url.origin} redirects too often`)
  }

  async #fetchOnce(
    url: URL,
    method: Dispatcher.HttpMethod,
    request: GuardedRequest,
    canBePrivate: boolean,
  ): Promise<GuardedResponse> {
    const { credentials, signal, body } = request
    const isPrivate = canBePrivate && this.isPrivateHost(hostOf(url))
    expectAllowed(url, isPrivate, request.insecure ?? false)
    const { http, unguarded, guarded } = await this.#loadAgents()
    const response = await http
      .request(url, {
        method,
        dispatcher: isPrivate ? unguarded : guarded,
        headers: {
          ...request.headers,
          // What is compressed can be a thousand times as long as it says.
          'accept-encoding': 'identity',
          ...(credentials?.origin === url.origin && { authorization: credentials.authorization }),
        },
        ...(body && { body }),
        signal,
      })
      .catch((cause: unknown) => {
        throw signal.aborted ? cause : toRequestError(method, url, cause)
      })
    // An answer that nobody reads any more may still fail.
    response.body.on('error', () => {})
    const header = (name: string): string | undefined => {
      const value = response.headers[name]
      return Array.isArray(value) ? value[0] : value
    }
    const encoding = header('content-encoding') ?? 'identity'
    if (encoding !== 'identity') {
      response.body.destroy()
      throw upstreamError(
        `${url.origin} sent an answer encoded as ${encoding.slice(0, 20)}, though none was asked for`,
      )
    }
    return { status: response.statusCode, header, body: response.body, url }
  }

  /** When first needed: most apps never ask for anything. */
  #loadAgents(): Promise<Agents> {
    this.#agents ??= import('undici').then((http) => {
      const limits = {
        headersTimeout: idleTimeoutMs,
        bodyTimeout: idleTimeoutMs,
        maxHeaderSize: maxHeaderBytes,
      }
      const guarded = guardLookup(this.#lookup)
      return {
        http,
        unguarded: new http.Agent({
          ...limits,
          connect: { timeout: connectTimeoutMs, lookup: this.#lookup },
        }),
        guarded: new http.Agent({ ...limits, connect: { timeout: connectTimeoutMs, lookup: guarded } }),
      }
    })
    return this.#agents
  }
}

/** `host:port`, in lower case; the ports of http and https where none is said. */
function addDefaultPorts(host: string): readonly string[] {
  const lower = host.toLowerCase()
  return /:\d+$/.test(lower) ? [lower] : [`${lower}:443`, `${lower}:80`]
}

/** With the port, which an address does not say where it is the protocol's. */
const hostOf = ({ hostname, port, protocol }: URL): string =>
  `${hostname}:${port || (protocol === 'http:' ? 80 : 443)}`

/** An address in the text is never looked up: it is checked here. */
function expectAllowed(url: URL, isPrivate: boolean, insecure: boolean): void {
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && insecure && isPrivate))
    throw requestDenied(url, url.protocol === 'http:' ? 'insecure protocol http' : 'no web address')
  if (url.username || url.password) throw requestDenied(url, 'an address with credentials in it')
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (!isPrivate && isIP(host) && !isPublicAddress(host)) throw requestDenied(url, privateAddress)
}

interface Agents {
  readonly http: typeof import('undici')
  readonly unguarded: Agent
  readonly guarded: Agent
}

/** The whole of a small body. Throws `upstream` for a longer one, whatever length it has told. */
export async function readLimitedBody({ body, url }: GuardedResponse, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length
    // Leaving the loop destroys the body.
    if (bytes > maxBytes)
      throw upstreamError(`${url.origin} sent more than ${maxBytes} bytes where few were expected`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** So that its connection is used again where that is cheap. */
export const discard = ({ body }: GuardedResponse): Promise<void> =>
  body.dump({ limit: maxDiscardedBytes }).then(
    () => {},
    () => {},
  )

/** Resolved and connected to are the same addresses: nothing can change between a check and its use. */
function guardLookup(lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) =>
    lookup(hostname, options, (error, address, family) => {
      const addresses = Array.isArray(address) ? address.map((one) => one.address) : [address]
      if (error || addresses.every(isPublicAddress)) callback(error, address, family)
      else callback(new LlmError('permission', `${hostname}: ${privateAddress}`), address, family)
    })
}

const privateAddress = 'an address that is not public'

const requestDenied = (url: URL, reason: string): LlmError =>
  new LlmError('permission', `${url.protocol}//${url.host} is not asked: ${reason}`)

export const upstreamError = (message: string, options?: ErrorOptions): LlmError =>
  new LlmError('upstream', message, {}, options)

/** Without the query of the address: it can hold a signature. */
function toRequestError(method: string, url: URL, cause: unknown): LlmError {
  if (cause instanceof LlmError) return cause
  const verb = `${method.slice(0, 1)}${method.slice(1).toLowerCase()}`
  return upstreamError(`${verb} "${url.origin}${url.pathname}": ${describeCause(cause)}`, { cause })
}

/** Of several addresses that were tried none has a message of its own. */
const describeCause = (cause: unknown): string =>
  cause instanceof AggregateError
    ? cause.errors.map(describeCause).join('; ')
    : cause instanceof Error
      ? cause.message || cause.name
      : String(cause)

function resolveLocation(location: string, base: URL): URL {
  if (!URL.canParse(location, base.href)) throw upstreamError(`${base.origin} redirects to no web address`)
  return new URL(location, base)
}
