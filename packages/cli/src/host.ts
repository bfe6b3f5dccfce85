/** `$OLLAMA_HOST`: `host`, `host:port`, `:port` or a whole URL; missing parts are the defaults. */
import { isIPv4 } from 'node:net'

export interface Host {
  readonly host: string
  readonly port: number
}

const defaults: Host = { host: '127.0.0.1', port: 11_434 }

export function parseHost(text: string): Host {
  const [, , rest = ''] = /^(\w+:\/\/)?([^/]*)/.exec(text.trim()) ?? []
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]*))(?::(\d+))?$/.exec(rest) ?? []
  const number = port === undefined ? defaults.port : Number(port)
  if ((bracketed ?? plain) === undefined || number > 65_535) {
    throw new Error(`Expected OLLAMA_HOST to be host:port, got '${text}'`)
  }
  return { host: bracketed || plain || defaults.host, port: number }
}

export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
