/** Starts Node's HTTP server on a free port of the loopback address. */
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Listening {
  /** Has no trailing slash. */
  readonly url: string
  readonly server: Server
  /** Also closes open connections. */
  close(): Promise<void>
}

export async function listen(handler: RequestListener, options: ServerOptions = {}): Promise<Listening> {
  const server = createServer(options, handler)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    server,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
