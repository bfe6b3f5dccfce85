/** Checks where a request comes from: its IP address, its `Host` header and its `Origin` header. */
import { BlockList, isIP } from 'node:net'
import type { HttpRequest } from './message.ts'
import { isPublicAddress } from './public-address.ts'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

const isLoopbackAddress = (address: string): boolean => {
  const family = isIP(address)
  return family !== 0 && loopback.check(address, family === 4 ? 'ipv4' : 'ipv6')
}

/**
 * Names of headers that proxies add. They reveal a proxy on this machine, behind which every client has a loopback
 * address. Cloudflare's begin with `cf-`, and `cdn-loop` is that of all content delivery networks (RFC 8586).
 */
const proxyHeader = /^(?:forwarded|via|cdn-loop|x-real-ip|x-forwarded(?:-.*)?|cf-.*|(?:.*-)?client-ip)$/

/** Whether a request comes from this machine and passed no proxy that reveals itself. */
export const isDirectLoopback = ({
  remoteAddress,
  httpVersion,
  headerNames,
}: Pick<HttpRequest, 'remoteAddress' | 'httpVersion' | 'headerNames'>): boolean =>
  remoteAddress !== undefined &&
  isLoopbackAddress(remoteAddress) &&
  // The version that older releases of nginx use by default. No client of the APIs does.
  !(Number(httpVersion) < 1.1) &&
  !headerNames().some((name) => proxyHeader.test(name))

/**
 * Whether the `Host` header is a local name or address. This check prevents DNS rebinding. In that attack,
 * the domain of a web page is made to resolve to this machine, so browsers treat requests to it as
 * same-origin. But the `Host` header still contains the public name of the domain. Addresses of local
 * networks and names that cannot be registered, such as `printer.local`, count as local.
 */
export function isLocalHost(host: string | undefined): boolean {
  if (host === undefined || host === '') return true
  const name = parseHostname(host)
  if (name === undefined || isPublicAddress(name)) return false
  return isIP(name) !== 0 || /(^|\.)localhost$|\.(local|internal)$/.test(name)
}

/** How the web page in the `Origin` header relates to this server. Only browsers send this header. */
export type Origin =
  | { readonly kind: 'none' }
  | { readonly kind: 'same' }
  | { readonly kind: 'allowed' | 'refused'; readonly origin: string }

export interface OriginRules {
  /** Patterns such as `https://app.example.com`. `*` matches any text. */
  readonly allowed: readonly string[]
  /**
   * Whether `sec-fetch-site: same-origin` is enough. Then pages of the same origin are recognised behind a proxy
   * that rewrites the `Host` header. False where the `Host` header has to prevent DNS rebinding.
   */
  readonly trustsFetchMetadata: boolean
}

export function classifyOrigin(
  request: Pick<HttpRequest, 'header' | 'host'>,
  { allowed, trustsFetchMetadata }: OriginRules,
): Origin {
  const origin = request.header('origin')
  if (origin === undefined) return { kind: 'none' }
  if (isSameOrigin(request, origin, trustsFetchMetadata)) return { kind: 'same' }
  const matches = (pattern: string): boolean => toWildcardRegExp(pattern).test(origin)
  return { kind: allowed.some(matches) ? 'allowed' : 'refused', origin }
}

/** Pages cannot set or change `sec-fetch-site`. Old browsers omit it, and so do all browsers over plain HTTP. */
function isSameOrigin(
  { header, host }: Pick<HttpRequest, 'header' | 'host'>,
  origin: string,
  trustsFetchMetadata: boolean,
) {
  const site = header('sec-fetch-site')
  if (site === 'cross-site' || site === 'same-site') return false
  if (site === 'same-origin' && trustsFetchMetadata) return true
  const [scheme] = /^https?:\/\//.exec(origin) ?? []
  const page = scheme && hostOf(origin)
  return page !== undefined && page === hostOf(`${scheme}${host ?? header('host')}`)
}

/** Host name and port of a URL, without the default port of its scheme. Some proxies add it to `Host`. */
const hostOf = (url: string): string | undefined => (URL.canParse(url) ? new URL(url).host : undefined)

/** URL schemes of desktop apps and editors. Web pages cannot have these schemes. */
const appSchemes = ['app', 'file', 'tauri', 'vscode-webview', 'vscode-file']

/** Origins of pages on this machine, at any port, and of desktop apps. */
export const localOrigins = [
  ...['http', 'https'].flatMap((scheme) =>
    ['localhost', '127.0.0.1', '[::1]'].flatMap((host) => [`${scheme}://${host}`, `${scheme}://${host}:*`]),
  ),
  ...appSchemes.map((scheme) => `${scheme}://*`),
]

/** Headers that let a page of another origin read the response. */
export const crossOriginHeaders = (origin: string): Readonly<Record<string, string>> => ({
  'access-control-allow-origin': origin,
  'access-control-expose-headers': '*',
  vary: 'Origin',
})

/** Headers of a response to a CORS preflight request. */
export const preflightHeaders = (
  request: HttpRequest,
  methods: string,
): Readonly<Record<string, string>> => ({
  'access-control-allow-methods': methods,
  'access-control-allow-headers': request.header('access-control-request-headers') ?? '',
  'access-control-max-age': '7200',
})

const parseHostname = (host: string): string | undefined =>
  /^\[([^\]]+)\](?::\d+)?$/.exec(host)?.[1] ?? /^([^:]+)(?::\d+)?$/.exec(host)?.[1]?.toLowerCase()

const toWildcardRegExp = (pattern: string): RegExp =>
  new RegExp(`^${pattern.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*')}$`, 'i')
