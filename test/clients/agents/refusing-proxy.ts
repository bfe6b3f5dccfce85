/** A proxy that refuses every request, so that no client reaches another machine, and records the hosts. */
import { listen } from '../../support/listen.ts'

export interface RefusingProxy {
  /** Environment variables that send all requests of a client through the proxy, except those to this machine. */
  readonly environment: Readonly<Record<string, string>>
  readonly hosts: Set<string>
  close(): Promise<void>
}

export async function refuseOthers(): Promise<RefusingProxy> {
  const hosts = new Set<string>()
  const { url, server, close } = await listen((req, res) => {
    hosts.add(new URL(req.url ?? '').host)
    res.writeHead(502).end()
  })
  server.on('connect', ({ url: host }, socket) => {
    hosts.add(host ?? '')
    socket.on('error', () => {})
    socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n')
  })
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy']
  const environment = {
    ...Object.fromEntries(names.map((name) => [name, url])),
    ...{ NO_PROXY: '127.0.0.1,localhost', no_proxy: '127.0.0.1,localhost' },
  }
  return { environment, hosts, close }
}
