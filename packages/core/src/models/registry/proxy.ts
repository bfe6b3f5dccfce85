/** Chooses the proxy of a request by the settings that curl and Go read from the environment. */
import { BlockList, isIP, isIPv6 } from 'node:net'
import { LlmError } from '../../errors.ts'

/** Values of environment variables. They are parsed for the first request. */
export interface ProxySettings {
  /** `$HTTPS_PROXY`: the proxy for `https` URLs, as a URL or `host:port`. */
  readonly https?: string | undefined
  /** `$HTTP_PROXY`: the proxy for `http` URLs. */
  readonly http?: string | undefined
  /** `$NO_PROXY`: hosts without a proxy, as `host`, `host:port`, an IP address, a CIDR range or `*`. */
  readonly none?: string | undefined
}

/**
 * Returns the proxy for a URL. Loopback addresses never have one: the proxy would reach itself. Throws an
 * `LlmError` `upstream` for a proxy that is no http or https URL.
 */
export function chooseProxy(url: URL, { https, http, none = '' }: ProxySettings): URL | undefined {
  const [variable, value] = url.protocol === 'https:' ? ['HTTPS_PROXY', https] : ['HTTP_PROXY', http]
  if (!value || isLoopback(url) || hasNoProxy(url, none)) return undefined
  const text = /^[a-z][a-z\d+.-]*:\/\//i.test(value) ? value : `http://${value}`
  const proxy = URL.canParse(text) ? new URL(text) : undefined
  if (proxy?.protocol === 'http:' || proxy?.protocol === 'https:') return proxy
  // The value may contain a password.
  throw new LlmError('upstream', `$${variable}: expected the URL of an http or https proxy.`, { setup: true })
}

/** Returns the value of the header `proxy-authorization`. */
export function proxyAuthorization({ username, password }: URL): string | undefined {
  if (!username && !password) return undefined
  return `Basic ${Buffer.from(`${decode(username)}:${decode(password)}`).toString('base64')}`
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text // A password with a bare percent sign.
  }
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')

function isLoopback(url: URL): boolean {
  const host = hostOf(url)
  return host === 'localhost' || host.endsWith('.localhost') || isInList(loopback, host)
}

const isInList = (list: BlockList, host: string): boolean =>
  isIP(host) !== 0 && list.check(host, isIPv6(host) ? 'ipv6' : 'ipv4')

function hasNoProxy(url: URL, none: string): boolean {
  const host = hostOf(url)
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  return none
    .toLowerCase()
    .split(/[,\s]+/)
    .some((entry) => entry === '*' || isInRange(host, entry) || isHostOrParent(host, port, entry))
}

/** @param range for example `10.0.0.0/8` */
function isInRange(host: string, range: string): boolean {
  const [address = '', bits = ''] = range.split('/')
  if (!isIP(address) || !/^\d{1,3}$/.test(bits) || Number(bits) > (isIPv6(address) ? 128 : 32)) return false
  const list = new BlockList()
  list.addSubnet(address, Number(bits), isIPv6(address) ? 'ipv6' : 'ipv4')
  return isInList(list, host)
}

/** `example.com`, `.example.com` and `*.example.com` all stand for `example.com` and the hosts below it. */
function isHostOrParent(host: string, port: string, entry: string): boolean {
  const [, bracketed, name = '', entryPort] = /^(?:\[([\da-f:.]+)\]|(.*?))(?::(\d{1,5}))?$/.exec(entry) ?? []
  const isAddress = isIPv6(entry)
  if (!isAddress && entryPort !== undefined && entryPort !== port) return false
  const parent = isAddress ? entry : (bracketed ?? name.replace(/^\*?\./, ''))
  return parent !== '' && (host === parent || host.endsWith(`.${parent}`))
}
