/** What can be known of a call before anybody looks into it: where it comes from, and which page sent it. */
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

/** Behind a proxy everybody is on this machine. */
const proxyHeaders = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip']

/** A call from this machine, with no proxy between. */
export const isDirectLoopback = ({
  remoteAddress,
  header,
}: Pick<HttpRequest, 'remoteAddress' | 'header'>): boolean =>
  remoteAddress !== undefined &&
  isLoopbackAddress(remoteAddress) &&
  proxyHeaders.every((name) => header(name) === undefined)

/**
 * A page can have its own domain name point at this machine, and then call it as if it were its own origin (DNS
 * rebinding). The `Host` header still says that name; numbers of a local network, and names that nobody can register, are harmless.
 */
export function isLocalHost(host: string | undefined): boolean {
  if (host === undefined || host === '') return true
  const name = parseHostname(host)
  if (name === undefined || isPublicAddress(name)) return false
  return isIP(name) !== 0 || /(^|\.)localhost$|\.(local|internal)$/.test(name)
}

/** What the `Origin` header says about the page that sent a call. Only browsers send one. */
export type Origin =
  | { readonly kind: 'none' }
  | { readonly kind: 'same' }
  | { readonly kind: 'allowed' | 'refused'; readonly origin: string }

/** @param allowed origins such as `https://app.example.com`, with `*` for any text; absent: none is refused */
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

/** Schemes of desktop apps and editors; no page on the web has one. */
const appSchemes = ['app', 'file', 'tauri', 'vscode-webview', 'vscode-file']

/** Pages that are served from this machine, at any port, or belong to an app on it. */
export const localOrigins = [
  ...['http', 'https'].flatMap((scheme) =>
    ['localhost', '127.0.0.1', '[::1]'].flatMap((host) => [`${scheme}://${host}`, `${scheme}://${host}:*`]),
  ),
  ...appSchemes.map((scheme) => `${scheme}://*`),
]

/** Lets a page on another origin read the answer. */
export const crossOriginHeaders = (origin: string): Readonly<Record<string, string>> => ({
  'access-control-allow-origin': origin,
  'access-control-expose-headers': '*',
  vary: 'Origin',
})

/** Answers a browser that asks what it may send. */
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
