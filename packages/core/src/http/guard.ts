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
 * Headers that proxies add. They reveal a proxy on this machine, behind which every client has a loopback
 * address.
 */
const proxyHeaders = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip']

/** Whether a request comes from this machine and passed no proxy. */
export const isDirectLoopback = ({
  remoteAddress,
  header,
}: Pick<HttpRequest, 'remoteAddress' | 'header'>): boolean =>
  remoteAddress !== undefined &&
  isLoopbackAddress(remoteAddress) &&
  proxyHeaders.every((name) => header(name) === undefined)

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

/** @param allowed patterns such as `https://app.example.com`. `*` matches any text. @default every origin */
export function classifyOrigin(
  request: Pick<HttpRequest, 'header'>,
  allowed: readonly string[] | undefined,
): Origin {
  const origin = request.header('origin')
  if (origin === undefined) return { kind: 'none' }
  if (origin.replace(/^https?:\/\//, '') === request.header('host')) return { kind: 'same' }
  const matches = (pattern: string): boolean => toWildcardRegExp(pattern).test(origin)
  return { kind: allowed === undefined || allowed.some(matches) ? 'allowed' : 'refused', origin }
}

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
