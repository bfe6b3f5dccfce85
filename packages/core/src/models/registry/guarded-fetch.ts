/**
 * Sends HTTP requests to hosts that clients or other servers choose. Private addresses are blocked unless the
 * app's options list the host. A proxy resolves names itself, so only the addresses in URLs are checked then.
 * Credentials are sent to one origin only. Headers and small bodies have size limits.
 */
import { lookup as resolveName } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import type { Readable } from 'node:stream'
import type { Agent, Dispatcher, ProxyAgent } from 'undici'
import { LlmError } from '../../errors.ts'
import { isLocalHost } from '../../http/guard.ts'
import { isPublicAddress } from '../../http/public-address.ts'
import { chooseProxy, type ProxySettings, proxyAuthorization } from './proxy.ts'

export interface GuardedRequest {
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH'
  readonly headers?: Readonly<Record<string, string>>
  /** `authorization` is sent to `origin` only, even after redirects. */
  readonly credentials?: { readonly origin: string; readonly authorization: string } | undefined
  /** Allows `http` to private hosts. @default false */
  readonly insecure?: boolean
  readonly body?: Readable | Uint8Array
  /** Hosts to which redirects may lead, as `host:port`. @default all public hosts */
  readonly redirectHosts?: readonly string[]
  readonly signal: AbortSignal
}

export interface GuardedResponse {
  readonly status: number
  header(name: string): string | undefined
  /** The caller must read or destroy the body. */
  readonly body: Dispatcher.ResponseData['body']
  /** URL after redirects. */
  readonly url: URL
}

export interface GuardOptions {
  /** Hosts that may have private addresses, as `host` or `host:port`. */
  readonly privateHosts: readonly string[]
  /** DNS lookup. @default the system's resolver */
  readonly lookup?: LookupFunction
  /** @default no proxy */
  readonly proxy?: ProxySettings
  /** Time limit for a connection. @default 30 s */
  readonly connectTimeoutMs?: number
}

const maxRedirects = 10
const redirectStatuses = [301, 302, 303, 307, 308]
/** Maximum bytes to read from an unused body. Reading more would cost more than a new connection. */
const maxDiscardedBytes = 16 * 1024
/** Time limit for the headers, and for the pause between two chunks. For a shorter limit, pass a signal. */
const idleTimeoutMs = 300_000
const defaultConnectTimeoutMs = 30_000
const maxHeaderBytes = 16 * 1024
const responseLimits = {
  headersTimeout: idleTimeoutMs,
  bodyTimeout: idleTimeoutMs,
  maxHeaderSize: maxHeaderBytes,
}

export class GuardedFetch {
  readonly #privateHosts: ReadonlySet<string>
  readonly #lookup: LookupFunction
  readonly #proxySettings: ProxySettings
  readonly #connectTimeoutMs: number
  /** By the URL of the proxy. */
  readonly #proxyAgents = new Map<string, ProxyAgent>()
  #agents: Promise<Agents> | undefined

  constructor({
    privateHosts,
    lookup = resolveName as LookupFunction,
    proxy = {},
    connectTimeoutMs = defaultConnectTimeoutMs,
  }: GuardOptions) {
    this.#connectTimeoutMs = connectTimeoutMs
    this.#proxySettings = proxy
    this.#privateHosts = new Set(privateHosts.flatMap(addDefaultPorts))
    this.#lookup = lookup
  }

  /** @param host host of a URL, with its port unless that is the default port of the protocol */
  isPrivateHost(host: string): boolean {
    return addDefaultPorts(host).some((one) => this.#privateHosts.has(one))
  }

  /** For messages: names the proxy of a URL, without its credentials. Empty without a proxy. */
  describeProxy(url: URL): string {
    const proxy = chooseProxy(url, this.#proxySettings)
    return proxy ? `, through the proxy ${proxy.origin}` : ''
  }

  /**
   * Follows redirects of `GET` and `HEAD`, and checks each URL. A redirect can lead to a private host only if
   * the first URL has the same host name. Throws `permission` for a blocked URL, and `upstream` for a server
   * that fails or sends an invalid response.
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
      if (request.redirectHosts?.includes(hostOf(url)) === false) throw requestDenied(url, 'a redirect')
    }
    throw upstreamError(`${url.origin} redirects too often`)
  }

  /** Closes all connections. Idle ones would keep a command running. */
  async close(): Promise<void> {
    const { guarded, unguarded } = (await this.#agents) ?? {}
    await Promise.all([guarded, unguarded, ...this.#proxyAgents.values()].map((agent) => agent?.destroy()))
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
    const proxy = chooseProxy(url, this.#proxySettings)
    if (proxy && !isPrivate && isLocalName(url)) throw requestDenied(url, privateAddress)
    const { http, unguarded, guarded } = await this.#loadAgents()
    const direct = isPrivate ? unguarded : guarded
    const response = await http
      .request(url, {
        method,
        dispatcher: proxy ? this.#proxyAgent(proxy, http) : direct,
        headers: {
          ...request.headers,
          // A compressed body can grow a thousandfold when it is decompressed.
          'accept-encoding': 'identity',
          ...(credentials?.origin === url.origin && { authorization: credentials.authorization }),
        },
        ...(body && { body }),
        signal,
      })
      .catch((cause: unknown) => {
        throw signal.aborted ? cause : toRequestError(method, url, cause, this.describeProxy(url))
      })
    // An abandoned body may still emit an error. Without a listener, this error would end the process.
    response.body.on('error', () => {})
    const header = (name: string): string | undefined => {
      const value = response.headers[name]
      return Array.isArray(value) ? value[0] : value
    }
    const encoding = header('content-encoding') ?? 'identity'
    if (encoding !== 'identity') {
      response.body.destroy()
      throw upstreamError(
        `${url.origin} sent a response encoded as ${encoding.slice(0, 20)}, but no encoding was requested`,
      )
    }
    return { status: response.statusCode, header, body: response.body, url }
  }

  #proxyAgent(proxy: URL, http: Agents['http']): ProxyAgent {
    const existing = this.#proxyAgents.get(proxy.href)
    if (existing) return existing
    const token = proxyAuthorization(proxy)
    const agent = new http.ProxyAgent({
      ...responseLimits,
      uri: proxy.origin,
      ...(token && { token }),
      // As curl does: `https` through a tunnel, `http` as a request with an absolute URL.
      proxyTunnel: false,
      proxyTls: { timeout: this.#connectTimeoutMs },
      clientFactory: (origin, options) =>
        new http.Pool(origin, { ...options, headersTimeout: this.#connectTimeoutMs }),
    })
    this.#proxyAgents.set(proxy.href, agent)
    return agent
  }

  /** Imports undici for the first request, since most apps never send a request. */
  #loadAgents(): Promise<Agents> {
    this.#agents ??= import('undici').then((http) => {
      const guarded = guardLookup(this.#lookup)
      return {
        http,
        unguarded: new http.Agent({
          ...responseLimits,
          connect: { timeout: this.#connectTimeoutMs, lookup: this.#lookup },
        }),
        guarded: new http.Agent({
          ...responseLimits,
          connect: { timeout: this.#connectTimeoutMs, lookup: guarded },
        }),
      }
    })
    return this.#agents
  }
}

/** Returns `host:port` in lower case. A host without a port gets both default ports, 443 and 80. */
function addDefaultPorts(host: string): readonly string[] {
  const lower = host.toLowerCase()
  return /:\d+$/.test(lower) ? [lower] : [`${lower}:443`, `${lower}:80`]
}

/** Returns `host:port`. Adds the protocol's default port, which URLs omit. */
const hostOf = ({ hostname, port, protocol }: URL): string =>
  `${hostname}:${port || (protocol === 'http:' ? 80 : 443)}`

/** Checks protocol, credentials and IP address of a URL. An IP address in a URL needs no DNS lookup. */
function expectAllowed(url: URL, isPrivate: boolean, insecure: boolean): void {
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && insecure && isPrivate))
    throw requestDenied(url, url.protocol === 'http:' ? 'insecure protocol http' : 'not an http or https URL')
  if (url.username || url.password) throw requestDenied(url, 'the URL contains credentials')
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (!isPrivate && isIP(host) && !isPublicAddress(host)) throw requestDenied(url, privateAddress)
}

/** Whether only local networks can have this name. A proxy would resolve it there. */
function isLocalName({ hostname }: URL): boolean {
  const name = hostname.replace(/\.$/, '')
  return isLocalHost(name) || (isIP(name) === 0 && !/[.:]/.test(name))
}

interface Agents {
  readonly http: typeof import('undici')
  readonly unguarded: Agent
  readonly guarded: Agent
}

/** Reads a small body. Throws an `LlmError` `upstream` beyond `maxBytes`, independent of `content-length`. */
export async function readLimitedBody({ body, url }: GuardedResponse, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length
    // Throwing out of the loop destroys the body.
    if (bytes > maxBytes)
      throw upstreamError(`${url.origin} sent more than ${maxBytes} bytes, the limit of this response`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** Drains a short body so that its connection can be reused. */
export const discard = ({ body }: GuardedResponse): Promise<void> =>
  body.dump({ limit: maxDiscardedBytes }).then(
    () => {},
    () => {},
  )

/** Checks the addresses that the socket connects to, so DNS cannot change between check and use. */
function guardLookup(lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) =>
    lookup(hostname, options, (error, address, family) => {
      const addresses = Array.isArray(address) ? address.map((one) => one.address) : [address]
      if (error || addresses.every(isPublicAddress)) callback(error, address, family)
      else callback(new LlmError('permission', `${hostname}: ${privateAddress}`), address, family)
    })
}

const privateAddress = 'the address is not public'

const requestDenied = (url: URL, reason: string): LlmError =>
  new LlmError('permission', `${url.protocol}//${url.host} is blocked: ${reason}`)

export const upstreamError = (message: string, options?: ErrorOptions): LlmError =>
  new LlmError('upstream', message, {}, options)

/**
 * Omits the query of the URL, which can contain a signature.
 *
 * @param route names the proxy, if there is one
 */
function toRequestError(method: string, url: URL, cause: unknown, route: string): LlmError {
  if (cause instanceof LlmError) return cause
  const verb = `${method.slice(0, 1)}${method.slice(1).toLowerCase()}`
  return upstreamError(`${verb} "${url.origin}${url.pathname}": ${describeCause(cause)}${route}`, { cause })
}

/** If a host has several addresses, the error is an `AggregateError` with an empty message. */
const describeCause = (cause: unknown): string =>
  cause instanceof AggregateError
    ? cause.errors.map(describeCause).join('; ')
    : cause instanceof Error
      ? cause.message || cause.name
      : String(cause)

function resolveLocation(location: string, base: URL): URL {
  if (!URL.canParse(location, base.href)) throw upstreamError(`${base.origin} redirects to an invalid URL`)
  return new URL(location, base)
}
