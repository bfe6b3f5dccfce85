/** Parses `$OLLAMA_HOST`: `host`, `host:port`, `:port` or a whole URL. Missing parts get their defaults. */
import { isIPv4 } from 'node:net'

export interface Host {
  readonly host: string
  readonly port: number
}

const defaults: Host = { host: '127.0.0.1', port: 11_434 }

export function parseHost(text: string, defaultPort = defaults.port): Host {
  const [, , rest = ''] = /^(\w+:\/\/)?([^/]*)/.exec(text.trim()) ?? []
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]*))(?::(\d+))?$/.exec(rest) ?? []
  const number = port === undefined ? defaultPort : Number(port)
  if ((bracketed ?? plain) === undefined || number > 65_535) {
    throw new Error(`Expected OLLAMA_HOST to be host:port, got '${text}'`)
  }
  return { host: bracketed || plain || defaults.host, port: number }
}

/**
 * Returns the URL that clients call, without a trailing slash. A path is kept, because the routes may be
 * mounted under this path.
 *
 * @param chosenPort takes precedence over the port in the text
 */
export function serverUrl(text: string, chosenPort?: number): string {
  const [, scheme = 'http', path = ''] = /^(?:(\w+):\/\/)?[^/]*(.*)$/.exec(text.trim()) ?? []
  const { host, port } = parseHost(text, scheme === 'https' ? 443 : undefined)
  return `${scheme}://${withBrackets(reachable[host] ?? host)}:${chosenPort ?? port}${path.replace(/\/+$/, '')}`
}

/** The loopback address for each address that stands for all interfaces. */
const reachable: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

export const withBrackets = (host: string): string => (host.includes(':') ? `[${host}]` : host)

export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
